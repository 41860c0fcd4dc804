"use strict";
// Python in a thread of its own, so that the page answers to its reader while it calculates.
// The page starts this file as a blob: so its content policy holds here too.

const KEPT = "unsample-files";
const FOLDER = "/home/pyodide/files";
let python = null;
let calculator = null;

const say = (kind, more = {}) => self.postMessage({ kind, ...more });
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

async function read(response, size, tell) {
  const bytes = new Uint8Array(size);
  const reader = response.body.getReader();
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > size) return null;
    bytes.set(value, at);
    at += value.length;
    tell(value.length);
  }
  return at === size ? bytes : null;
}

// Files are known by their hash, wherever they come from.
async function bring(file, tell) {
  const kept = await self.caches?.open(KEPT);
  let seen = 0;
  const count = (more) => {
    seen += more;
    tell(more);
  };
  for (const from of [() => kept?.match(file.url), () => fetch(file.url, { credentials: "omit" })]) {
    const response = await from();
    if (!response) continue;
    if (!response.ok) throw new Error(`${file.name} could not be fetched: status ${response.status}.`);
    const copy = response.headers.has("x-kept");
    const bytes = await read(response, file.size, count);
    if (bytes && hex(await crypto.subtle.digest("SHA-256", bytes)) === file.sha256) {
      if (!copy) await kept?.put(file.url, new Response(bytes, { headers: { "x-kept": "1" } })).catch(() => {});
      return bytes;
    }
    await kept?.delete(file.url);
    tell(-seen);
    seen = 0;
  }
  throw new Error(`${file.name} is not the file that this page was made for. Nothing of it was run.`);
}

async function forgetOthers(files) {
  const kept = await self.caches?.open(KEPT);
  const wanted = new Set(files.map((file) => file.url));
  for (const request of (await kept?.keys()) ?? []) if (!wanted.has(request.url)) await kept.delete(request);
}

async function start({ files, info, imports }) {
  if (!self.crypto?.subtle) throw new Error("Open this page by https, or from this computer: browsers check files nowhere else.");
  const total = files.reduce((sum, file) => sum + file.size, 0);
  let loaded = 0;
  const tell = (more) => {
    loaded += more;
    say("progress", { loaded, total, text: `Loading Python: ${(loaded / 1e6).toFixed(0)} of ${(total / 1e6).toFixed(0)} MB` });
  };
  const parts = new Map();
  await Promise.all(files.map(async (file) => parts.set(file.name, await bring(file, tell))));
  await forgetOthers(files);

  say("progress", { text: "Starting Python" });
  const load = (name) => import(URL.createObjectURL(new Blob([parts.get(name)], { type: "text/javascript" })));
  const { loadPyodide } = await load("pyodide.mjs");
  const { default: createPyodideModule } = await load("pyodide.asm.mjs");
  // From here on nothing is fetched: Pyodide gets the files that were checked, and no others.
  const types = { wasm: "application/wasm", zip: "application/zip" };
  self.fetch = async (address) => {
    const name = String(address).split("/").pop();
    if (!parts.has(name)) throw new Error(`${name} is not among the files of this page.`);
    return new Response(parts.get(name), { headers: { "content-type": types[name.split(".").pop()] ?? "" } });
  };
  python = await loadPyodide({
    indexURL: files[0].url.replace(/[^/]*$/, ""),
    lockFileContents: { info, packages: {} },
    createPyodideModule,
  });
  const site = python.runPython("import site; site.getsitepackages()[0]");
  for (const { name } of files.filter((file) => file.unpack)) {
    say("progress", { text: `Unpacking ${name.split("-")[0]}` });
    python.unpackArchive(parts.get(name), "zip", { extractDir: site });
  }
  parts.clear();
  say("progress", { text: "Starting unsample" });
  calculator = python.runPython(`${imports}\nCalculator()`);
  say("ready");
}

function answer({ id, question, files }) {
  const { FS } = python;
  FS.mkdirTree(FOLDER);
  FS.chdir(FOLDER);
  for (const name of FS.readdir(FOLDER)) if (name !== "." && name !== "..") FS.unlink(name);
  for (const { name, bytes } of files) FS.writeFile(name, new Uint8Array(bytes));
  const asked = { ...question, files: files.map((file) => file.name) };
  say("answer", { id, text: calculator.answer(JSON.stringify(asked)) });
}

const jobs = {
  start,
  answer,
  report: ({ id }) => say("report", { id, text: calculator.report() }),
  numbers: ({ id }) => say("numbers", { id, text: calculator.numbers() }),
};
self.onmessage = async ({ data }) => {
  try {
    await jobs[data.job](data);
  } catch (problem) {
    // A Python error ends in the line that says what it was.
    const text = String(problem.message ?? problem).trim().split("\n").pop();
    say("failed", { id: data.id, job: data.job, text });
  }
};
