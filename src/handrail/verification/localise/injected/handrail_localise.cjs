// Records which code each test of `node --test` runs. Loaded into every process by NODE_OPTIONS=--require.
// V8 counts; one JSON file for each process: {"tests": [{"name": ..., "scripts": [{"path", "functions"}]}]}
"use strict";

const fs = require("node:fs");
const inspector = require("node:inspector");
const path = require("node:path");
const { fileURLToPath } = require("node:url");

const root = process.env.HANDRAIL_LOCALISE_ROOT.replace(/\/$/, "") + "/";
const folder = process.env.HANDRAIL_LOCALISE_FOLDER;
const MOST_TESTS = 500;

// The runner itself and programs that tests start have no tests of their own.
if (process.env.NODE_TEST_CONTEXT) {
  const { beforeEach, afterEach } = require("node:test");
  const session = new inspector.Session();
  const tests = [];
  const post = (method, options) => {
    let found;
    session.post(method, options, (error, result) => {
      found = error ? undefined : result;
    });
    return found;
  };
  session.connect();
  post("Profiler.enable");
  post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });

  const own = (url) => {
    if (!url.startsWith("file://")) return "";
    const file = fileURLToPath(url);
    return file.startsWith(root) && !file.includes("/node_modules/") ? file.slice(root.length) : "";
  };
  const take = () =>
    (post("Profiler.takePreciseCoverage")?.result ?? [])
      .map(({ url, functions }) => ({ path: own(url), functions }))
      .filter((script) => script.path && script.functions.some((each) => each.ranges[0].count))
      .map(({ path, functions }) => ({
        path,
        functions: functions.map(({ ranges }) => ranges.map((range) => [range.startOffset, range.endOffset, range.count])),
      }));

  beforeEach(() => {
    take(); // counts begin again
  });
  afterEach((context) => {
    if (tests.length < MOST_TESTS) tests.push({ name: context?.name ?? "", scripts: take() });
  });
  process.on("exit", () => {
    const file = path.relative(root, process.argv[1] ?? "");
    fs.writeFileSync(path.join(folder, `lines-${process.pid}.json`), JSON.stringify({ file, tests }));
  });
}
