// Runs pytest inside Pyodide: node run.mjs REPOSITORY ARGUMENTS... (tools/try_pyodide.py does it)
import { pathToFileURL } from "node:url";

const [root, ...given] = process.argv.slice(2);
const place = `${process.env.PYODIDE}/`;
const { loadPyodide } = await import(pathToFileURL(`${place}pyodide.mjs`));
const python = await loadPyodide({
  indexURL: place,
  lockFileContents: { info: { abi_version: "2026_0", arch: "wasm32", platform: "emscripten_5_0_3", python: "3.14.0" }, packages: {} },
  env: { HOME: "/home/pyodide", PYTHONINSPECT: "", PYTHONDONTWRITEBYTECODE: "1" },
});
for (const [from, to] of [[root, "/repository"], [process.env.LIBRARIES, "/libraries"]]) {
  python.FS.mkdirTree(to);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: from }, to);
}
globalThis.given = given;
let code = 1;
try {
  code = await python.runPythonAsync(`
import os, sys
sys.path[:0] = ["/repository/src", "/repository", "/libraries"]
os.chdir("/repository")
import pytest
from js import given
from tests.pyodide import plugin
int(pytest.main([*given, "-q", "--tb=short", "--no-header", "-p", "no:cacheprovider"], plugins=[plugin]))
`);
} catch (problem) {
  console.log(String(problem.message).slice(-4000));
}
process.exit(code);
