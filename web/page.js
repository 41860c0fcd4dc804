"use strict";
(() => {
  // The page asks and draws. What is computed, said and refused is Python's.
  const CALCULATORS = ["published", "plan", "ranks"];
  const REPORTS_AT_ONCE = new Set(["ranks"]);
  const at = (id) => document.getElementById(id);
  const answerBox = at("answer"), said = at("said");
  const state = { ready: false, busy: false, last: 0, next: null, shown: null, files: [], report: null, follow: false };
  let worker = null;

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  // --- the link ---------------------------------------------------------------------------------

  const current = () => CALCULATORS.find((name) => !at(name).hidden);
  const inputs = (name) => [...at(name).elements].filter((one) => one.name && one.type !== "file");
  function linked() {
    const given = new URLSearchParams(location.hash.slice(1));
    const name = given.get("calculator");
    return { name: CALCULATORS.includes(name) ? name : CALCULATORS[0], given };
  }
  function linkOf(name) {
    const plain = (text) => encodeURIComponent(text).replace(/%20/g, "+").replace(/%40/g, "@").replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%3D/g, "=");
    const fields = inputs(name).map((one) => `${one.name}=${plain(one.value.trim())}`);
    return `#calculator=${name}&${fields.join("&")}`;
  }
  function open(ask) {
    const { name, given } = linked();
    const moved = current() !== name;
    for (const each of CALCULATORS) at(each).hidden = each !== name;
    for (const link of document.querySelectorAll(".tabs a")) {
      if (link.hash === `#calculator=${name}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    for (const input of inputs(name)) {
      if (!given.has(input.name)) continue;
      input.value = given.get(input.name);
      // An option that is not there leaves a list empty: then nothing is stated.
      if (input.tagName === "SELECT" && input.selectedIndex < 0) input.value = "";
      const more = input.closest("details");
      if (more && input.value !== input.defaultValue && input.tagName === "INPUT") more.open = true;
    }
    document.title = `${at(`${name}-title`).textContent} - unsample`;
    if (moved) clear();
    if (ask && (name !== "ranks" || state.files.length)) submit(name);
  }

  // --- asking -----------------------------------------------------------------------------------

  function clear() {
    state.shown = null;
    said.replaceChildren();
    at("waiting").hidden = false;
    at("report").hidden = true;
    state.report?.remove();
    state.report = null;
    forgive();
  }
  function forgive() {
    document.querySelectorAll("main .problem").forEach((one) => one.remove());
    for (const input of document.querySelectorAll("[aria-invalid]")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-errormessage");
    }
  }
  function submit(name) {
    const fields = Object.fromEntries(inputs(name).map((one) => [one.name, one.value]));
    state.next = { name, fields, files: name === "ranks" ? state.files : [] };
    history.replaceState(null, "", linkOf(name));
    forgive();
    askNext();
  }
  async function askNext() {
    if (!state.next) return;
    wait(true);
    if (!state.ready || state.busy) return;
    const { name, fields, files } = state.next;
    state.next = null;
    state.busy = true;
    const id = ++state.last;
    const sent = await Promise.all(files.map(async (file) => ({ name: plainName(file.name), bytes: await file.arrayBuffer() })));
    worker.postMessage({ job: "answer", id, question: { calculator: name, fields }, files: sent }, sent.map((file) => file.bytes));
  }
  // Names of files name models; what a shell or a pattern would take for its own is left out.
  const plainName = (name) => name.replace(/[^\p{L}\p{N}._ -]/gu, "_").replace(/^[.-]+/, "_") || "ranks";
  function wait(on) {
    answerBox.setAttribute("aria-busy", String(on));
    document.body.classList.toggle("busy", on);
    if (on && !said.childElementCount) at("waiting").textContent = state.ready ? "Calculating." : "The answer comes when Python has been loaded.";
  }

  // --- answers ----------------------------------------------------------------------------------

  function answered({ text }) {
    state.busy = false;
    wait(false);
    forgive();
    const { answer, error } = JSON.parse(text);
    const name = current();
    if (state.next) return askNext();
    if (error) return refuse(name, error);
    state.shown = name;
    at("waiting").hidden = true;
    said.replaceChildren(...drawn(answer));
    window.drawCharts(said);
    at("report").hidden = false;
    at("show-report").hidden = false;
    at("save-report").hidden = true;
    at("making").textContent = "";
    state.report?.remove();
    state.report = null;
    if (REPORTS_AT_ONCE.has(name)) at("show-report").click();
    // On a phone the answer may stand below the screen.
    if (state.follow && answerBox.getBoundingClientRect().top > 0.7 * innerHeight) answerBox.scrollIntoView();
    state.follow = false;
  }
  function drawn({ sentences, about, terms, chart, command, warnings }) {
    const [first, ...others] = sentences;
    const parts = [make("p", { class: "verdict-line" }, first), ...others.map((text) => make("p", {}, text))];
    const figure = make("figure", { class: "interactive", id: chart.identity },
      make("h3", { id: `${chart.identity}-title` }, chart.title),
      make("div", { class: "stage" }),
      make("script", { type: "application/json" }, JSON.stringify(chart)),
      make("figcaption", { id: `${chart.identity}-caption` }, chart.caption));
    parts.push(figure);
    if (terms.length) {
      parts.push(make("h3", {}, about), make("dl", { class: "terms" }, ...terms.flatMap(([name, figure, means]) => [
        make("dt", {}, name), make("dd", {}, make("strong", {}, figure), ` ${means}`),
      ])));
    }
    if (warnings.length) {
      parts.push(make("section", { class: "warnings" }, make("h3", {}, warnings.length === 1 ? "Warning" : "Warnings"),
        make("ul", {}, ...warnings.map((text) => make("li", {}, text)))));
    }
    const copy = make("button", { type: "button", class: "quieter" }, "Copy a link to this");
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(location.href);
      copy.textContent = "Copied";
    });
    parts.push(make("p", { class: "buttons" }, copy));
    parts.push(make("p", { class: "quiet same" }, "The same by the command:"), make("pre", { tabindex: "0" }, make("code", {}, `unsample ${command}`)));
    return parts;
  }
  function refuse(name, { message, field }) {
    const input = at(name).elements[field] ?? at(name).elements[0];
    const box = make("p", { class: "problem", id: "refusal", role: "alert" }, message);
    input.closest(".field").append(box);
    const more = input.closest("details");
    if (more) more.open = true;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-errormessage", "refusal");
    said.replaceChildren();
    at("waiting").hidden = false;
    at("waiting").textContent = "There is no answer yet: see the marked field.";
    at("report").hidden = true;
    state.report?.remove();
    state.report = null;
    input.focus();
  }

  // --- reports ----------------------------------------------------------------------------------

  const save = (node, text, type, name) => {
    node.href = URL.createObjectURL(new Blob([text], { type }));
    node.download = name;
  };
  function showReport({ text }) {
    state.busy = false;
    at("making").textContent = "";
    save(at("save-report"), text, "text/html", `unsample-${state.shown}.html`);
    at("save-report").hidden = false;
    at("show-report").hidden = true;
    // It runs its own script under its own policy, and can reach nothing of this page.
    state.report = make("iframe", { sandbox: "allow-scripts", title: "The full report" });
    state.report.srcdoc = text;
    at("report").append(state.report);
    askNext();
  }
  function saveNumbers({ text }) {
    state.busy = false;
    at("making").textContent = "";
    const link = make("a");
    save(link, text, "application/json", `unsample-${state.shown}.json`);
    link.click();
    askNext();
  }
  function later(job, text) {
    if (state.busy) return;
    state.busy = true;
    at("making").textContent = text;
    worker.postMessage({ job, id: ++state.last });
  }
  at("show-report").addEventListener("click", () => later("report", "Making the report. This takes some seconds."));
  at("save-numbers").addEventListener("click", () => later("numbers", "Writing the numbers."));
  window.addEventListener("message", ({ source, data }) => {
    if (state.report && source === state.report.contentWindow && Number.isFinite(data?.height)) {
      state.report.style.height = `${Math.min(Math.max(data.height, 300), 20000) + 8}px`;
    }
  });

  // --- files ------------------------------------------------------------------------------------

  function choose(files) {
    state.files = [...files];
    at("ranks-files-chosen").textContent = state.files.length ? state.files.map((file) => file.name).join(", ") : "No file yet.";
    state.follow = true;
    if (state.files.length) submit("ranks");
  }
  const drop = document.querySelector(".drop");
  at("ranks-files").addEventListener("change", (event) => choose(event.target.files));
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    at("ranks").addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragenter" || kind === "dragover");
      if (kind === "drop") choose(event.dataTransfer.files);
    });
  }
  at("example").addEventListener("click", async () => {
    const response = await fetch("example.csv");
    choose([new File([await response.blob()], "example.csv")]);
  });

  // --- start ------------------------------------------------------------------------------------

  function progress({ loaded, total, text }) {
    at("stage").textContent = text;
    if (!total) return at("progress").removeAttribute("value");
    at("progress").max = total;
    at("progress").value = loaded;
  }
  function broken(text) {
    at("loading").hidden = true;
    at("broken").hidden = false;
    at("broken").textContent = text;
    wait(false);
  }
  function failed({ job, text }) {
    state.busy = false;
    if (job === "start") return broken(`Python could not be started. ${text}`);
    at("making").textContent = "";
    broken(`The calculation failed. This is an error of the page: ${text}`);
  }
  const heard = {
    progress,
    ready: () => {
      state.ready = true;
      at("loading").hidden = true;
      askNext();
    },
    answer: answered,
    report: showReport,
    numbers: saveNumbers,
    failed,
  };
  async function begin() {
    const [made, script] = await Promise.all([
      fetch("files.json").then((response) => response.json()),
      fetch("worker.js").then((response) => response.text()),
    ]);
    for (const file of made.files) file.url = new URL(file.url, location.href).href;
    worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), { type: "module" });
    worker.onmessage = ({ data }) => heard[data.kind](data);
    worker.onerror = (event) => broken(`Python could not be started. ${event.message ?? ""}`);
    worker.postMessage({ job: "start", ...made });
  }
  for (const name of CALCULATORS) {
    at(name).addEventListener("submit", (event) => {
      event.preventDefault();
      state.follow = true;
      submit(name);
    });
  }
  window.addEventListener("hashchange", () => open(true));
  open(true);
  begin().catch((problem) => broken(`This page could not be loaded. ${problem.message}`));
  navigator.serviceWorker?.register("service.js").catch(() => {}); // without it the page loads anew
})();
