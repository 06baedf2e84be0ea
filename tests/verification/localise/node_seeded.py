"""One-line bugs in JavaScript, with tests for `node --test`."""

from tests.verification.localise.seeded import Bug

QUEUE = """\
const LIMIT = 3;

class Queue {
  constructor(limit = LIMIT) {
    this.limit = limit;
    this.waiting = [];
    this.running = new Set();
    this.done = [];
  }

  add(name, priority = 0) {
    if (this.waiting.some((job) => job.name === name)) {
      return false;
    }
    this.waiting.push({ name, priority });
    this.waiting.sort((a, b) => b.priority - a.priority);
    return true;
  }

  start() {
    const started = [];
    while (this.waiting.length > 0 && this.running.size < this.limit) {
      const job = this.waiting.shift();
      this.running.add(job.name);
      started.push(job.name);
    }
    return started;
  }

  finish(name) {
    if (!this.running.delete(name)) {
      throw new Error(`not running: ${name}`);
    }
    this.done.push(name);
    return this.start();
  }

  get size() {
    return this.waiting.length + this.running.size;
  }
}

module.exports = { Queue };
"""

QUEUE_TESTS = """\
const { test, describe, it } = require("node:test");
const assert = require("node:assert");

const filled = (...names) => {
  const queue = new Queue();
  for (const name of names) queue.add(name);
  return queue;
};

test("starts up to the limit", () => {
  assert.deepEqual(filled("a", "b", "c", "d").start(), ["a", "b", "c"]);
});
test("starts what there is", () => {
  assert.deepEqual(filled("a").start(), ["a"]);
});
test("nothing to start", () => {
  assert.deepEqual(filled().start(), []);
});
test("no name twice", () => {
  const queue = filled("a");
  assert.equal(queue.add("a"), false);
  assert.equal(queue.size, 1);
});
test("priority first", () => {
  const queue = filled("a");
  queue.add("b", 5);
  assert.deepEqual(queue.start(), ["b", "a"]);
});
describe("finish", () => {
  it("starts the next", () => {
    const queue = filled("a", "b", "c", "d");
    queue.start();
    assert.deepEqual(queue.finish("a"), ["d"]);
    assert.deepEqual(queue.done, ["a"]);
  });
  it("refuses what does not run", () => {
    assert.throws(() => filled("a").finish("a"), /not running/);
  });
});
test("size counts both", () => {
  const queue = filled("a", "b", "c", "d");
  queue.start();
  assert.equal(queue.size, 4);
});
"""

ROUTES = """\
function match(pattern, path) {
  const wanted = pattern.split("/").filter(Boolean);
  const given = path.split("?")[0].split("/").filter(Boolean);
  const values = {};
  for (let i = 0; i < wanted.length; i += 1) {
    if (wanted[i] === "*") {
      values.rest = given.slice(i).join("/");
      return values;
    }
    if (given[i] === undefined) {
      return null;
    }
    if (wanted[i].startsWith(":")) {
      values[wanted[i].slice(1)] = decodeURIComponent(given[i]);
    } else if (wanted[i] !== given[i]) {
      return null;
    }
  }
  return given.length === wanted.length ? values : null;
}

function query(path) {
  const found = {};
  const text = path.split("?")[1] ?? "";
  for (const part of text.split("&").filter(Boolean)) {
    const [name, value = ""] = part.split("=");
    found[name] = decodeURIComponent(value);
  }
  return found;
}

function first(patterns, path) {
  for (const pattern of patterns) {
    const values = match(pattern, path);
    if (values !== null) {
      return { pattern, values };
    }
  }
  return null;
}

module.exports = { match, query, first };
"""

ROUTES_TESTS = """\
const { test } = require("node:test");
const assert = require("node:assert");

test("plain", () => {
  assert.deepEqual(match("/a/b", "/a/b"), {});
});
test("other", () => {
  assert.equal(match("/a/b", "/a/c"), null);
});
test("value", () => {
  assert.deepEqual(match("/user/:id", "/user/7"), { id: "7" });
});
test("decoded value", () => {
  assert.deepEqual(match("/user/:id", "/user/a%20b"), { id: "a b" });
});
test("too short", () => {
  assert.equal(match("/a/b", "/a"), null);
});
test("too long", () => {
  assert.equal(match("/a", "/a/b"), null);
});
test("rest", () => {
  assert.deepEqual(match("/files/*", "/files/x/y"), { rest: "x/y" });
});
test("query", () => {
  assert.deepEqual(query("/a?x=1&y"), { x: "1", y: "" });
});
test("no query", () => {
  assert.deepEqual(query("/a"), {});
});
test("query is no part of the path", () => {
  assert.deepEqual(match("/a", "/a?x=1"), {});
});
test("first", () => {
  assert.deepEqual(first(["/a", "/:x"], "/b"), { pattern: "/:x", values: { x: "b" } });
});
test("none", () => {
  assert.equal(first(["/a"], "/b"), null);
});
"""

NODE = {"queue": (QUEUE, QUEUE_TESTS, "Queue"), "routes": (ROUTES, ROUTES_TESTS, "match, query, first")}
NODE_BUGS = (
    Bug("queue", "const LIMIT = 3;", "const LIMIT = 2;"),
    Bug(
        "queue",
        "this.waiting.sort((a, b) => b.priority - a.priority);",
        "this.waiting.sort((a, b) => a.priority - b.priority);",
    ),
    Bug("queue", "return this.waiting.length + this.running.size;", "return this.waiting.length;"),
    Bug("routes", 'values.rest = given.slice(i).join("/");', 'values.rest = given.slice(i + 1).join("/");'),
    Bug(
        "routes",
        'const given = path.split("?")[0].split("/").filter(Boolean);',
        'const given = path.split("/").filter(Boolean);',
    ),
    Bug("routes", 'const [name, value = ""] = part.split("=");', 'const [name, value] = part.split("=");'),
)
