"use strict";
// Python in a thread of its own, so that the page answers to its reader while it calculates.

let answer = null;

async function start(page, pyodide) {
  const from = new URL(pyodide, page).href;
  const say = (stage) => self.postMessage({ stage });
  say("Loading Python, about 30 MB the first time.");
  const { loadPyodide } = await import(`${from}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: from });
  // Their hashes stand in the lock file of this version, and are checked.
  await python.loadPackage(["numpy", "scipy"], { messageCallback: () => {} });
  say("Starting unsample.");
  const get = async (name) => {
    const response = await fetch(new URL(name, page));
    if (!response.ok) throw new Error(`${name} could not be fetched: status ${response.status}.`);
    return response;
  };
  const site = python.runPython("import site; site.getsitepackages()[0]");
  python.unpackArchive(await (await get("unsample.zip")).arrayBuffer(), "zip", { extractDir: site });
  python.runPython(await (await get("calculators.py")).text());
  answer = python.globals.get("answer");
  self.postMessage({ ready: true });
}

self.onmessage = async ({ data }) => {
  try {
    if (data.start) await start(data.start, data.pyodide);
    else self.postMessage({ answer: answer(data.ask) });
  } catch (problem) {
    // A Python error ends in the line that says what it was.
    self.postMessage({ failed: String(problem.message ?? problem).trim().split("\n").pop() });
  }
};
