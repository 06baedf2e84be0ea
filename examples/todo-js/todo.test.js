const test = require("node:test");
const assert = require("node:assert");
const { TodoList } = require("./todo.js");

test("open items are those not done", () => {
  const list = new TodoList();
  list.add("write");
  list.add("read");
  list.complete("write");
  assert.deepStrictEqual(list.open(), ["read"]);
});
