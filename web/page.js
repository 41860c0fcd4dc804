"use strict";
(() => {
  // The page asks and shows. What is computed, said and refused is Python's.
  const at = (id) => document.getElementById(id);
  const forms = [...document.forms];
  const said = at("said");
  const state = { ready: false, asking: false, next: null, files: [], report: null };
  let worker = null;

  // --- the link carries the inputs --------------------------------------------------------------

  const inputs = (form) => [...form.elements].filter((one) => one.name && one.type !== "file");
  const fieldsOf = (form) => Object.fromEntries(inputs(form).map((one) => [one.name, one.value]));
  const current = () => forms.find((form) => !form.hidden);

  function open() {
    const given = new URLSearchParams(location.hash.slice(1));
    const form = forms.find((one) => one.id === given.get("calculator")) ?? forms[0];
    const moved = form.hidden;
    for (const each of forms) each.hidden = each !== form;
    for (const link of document.querySelectorAll(".tabs a")) {
      if (link.hash === `#calculator=${form.id}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    for (const input of inputs(form)) {
      if (!given.has(input.name)) continue;
      input.value = given.get(input.name);
      // An option that is not there leaves a list empty: then nothing is stated.
      if (input.selectedIndex < 0) input.value = "";
    }
    if (moved) clear("The answer appears here.");
    if (form.id !== "ranks" || state.files.length) submit(form);
  }
  function submit(form) {
    const fields = fieldsOf(form);
    const link = `#${new URLSearchParams({ calculator: form.id, ...fields })}`;
    // Some browsers refuse an address of a megabyte, which a pasted text can be.
    history.replaceState(null, "", link.length < 100000 ? link : `#calculator=${form.id}`);
    state.next = { calculator: form.id, fields, files: form.id === "ranks" ? state.files : [] };
    ask();
  }

  // --- asking and answering ---------------------------------------------------------------------

  function clear(text) {
    said.textContent = text;
    said.hidden = !text;
    at("saved").hidden = true;
    state.report?.remove();
    state.report = null;
    document.querySelectorAll("form .problem").forEach((one) => one.remove());
    document.querySelectorAll("[aria-invalid]").forEach((one) => one.removeAttribute("aria-invalid"));
  }
  async function ask() {
    if (!state.next || state.asking || !state.ready) return;
    const question = state.next;
    state.next = null;
    state.asking = true;
    clear("Calculating.");
    question.files = await Promise.all(question.files.map(async (file) => [file.name, await file.text()]));
    worker.postMessage({ ask: JSON.stringify(question) });
  }
  function answered(text) {
    state.asking = false;
    if (state.next) return ask();
    const { page, numbers, problem } = JSON.parse(text);
    if (problem) return refuse(problem);
    clear("");
    // It runs its own script under its own policy, and can reach nothing of this page.
    state.report = document.createElement("iframe");
    state.report.setAttribute("sandbox", "allow-scripts");
    state.report.title = "The result";
    state.report.srcdoc = page;
    at("answer").append(state.report);
    save("save-page", page, "text/html", "html");
    save("save-numbers", numbers, "application/json", "json");
    at("saved").hidden = false;
  }
  function save(id, text, type, ending) {
    URL.revokeObjectURL(at(id).href);
    at(id).href = URL.createObjectURL(new Blob([text], { type }));
    at(id).download = `unsample-${current().id}.${ending}`;
  }
  function refuse(problem) {
    clear("There is no answer: see the marked field.");
    // Messages begin with the argument, which is the name of its field.
    const form = current();
    const input = form.elements[problem.split(/\W/, 1)[0]] ?? form.elements[0];
    const box = document.createElement("p");
    box.className = "problem";
    box.setAttribute("role", "alert");
    box.textContent = problem;
    input.closest("label").after(box);
    input.setAttribute("aria-invalid", "true");
    input.focus();
  }
  window.addEventListener("message", ({ source, data }) => {
    if (source === state.report?.contentWindow && Number.isFinite(data?.height)) {
      state.report.style.height = `${Math.min(Math.max(data.height, 300), 20000) + 8}px`;
    }
  });

  // --- files ------------------------------------------------------------------------------------

  function choose(files) {
    state.files = [...files];
    at("chosen").textContent = state.files.map((file) => file.name).join(", ") || "No file yet.";
    submit(at("ranks"));
  }
  const ranks = at("ranks");
  ranks.elements.files.addEventListener("change", (event) => choose(event.target.files));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    ranks.addEventListener(kind, (event) => {
      event.preventDefault();
      ranks.classList.toggle("over", kind === "dragover");
      if (kind === "drop") choose(event.dataTransfer.files);
    });
  }
  at("example").addEventListener("click", async () => {
    const response = await fetch("example.csv");
    choose([new File([await response.blob()], "example.csv")]);
  });

  // --- start ------------------------------------------------------------------------------------

  function broken(text) {
    clear(`This page could not calculate. ${text}`);
    said.className = "problem";
  }
  async function begin() {
    // A worker from a blob has the content policy of this page.
    const script = await (await fetch("worker.js")).blob();
    worker = new Worker(URL.createObjectURL(script), { type: "module" });
    worker.onerror = (event) => broken(event.message ?? "");
    worker.onmessage = ({ data }) => {
      if (data.failed) return broken(data.failed);
      if (data.answer) return answered(data.answer);
      state.ready = Boolean(data.ready);
      if (!state.ready) said.textContent = data.stage;
      else if (state.next) ask();
      else said.textContent = "The answer appears here.";
    };
    worker.postMessage({ start: location.href, pyodide: document.body.dataset.pyodide });
  }
  for (const form of forms) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit(form);
    });
  }
  window.addEventListener("hashchange", open);
  open();
  begin().catch((problem) => broken(problem.message));
})();
