const test = require("node:test");
const assert = require("node:assert");
const { Stack } = require("./stack.js");

test("peek shows the last item and keeps it", () => {
  const stack = new Stack();
  stack.push(1);
  stack.push(2);
  assert.strictEqual(stack.peek(), 2);
  assert.strictEqual(stack.size, 2);
});
