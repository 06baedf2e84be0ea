const test = require("node:test");
const assert = require("node:assert");
const { clamp } = require("./clamp.js");

test("inside", () => assert.strictEqual(clamp(5, 1, 10), 5));
test("below", () => assert.strictEqual(clamp(-5, 1, 10), 1));
test("above", () => assert.strictEqual(clamp(50, 1, 10), 10));
