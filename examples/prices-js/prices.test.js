const test = require("node:test");
const assert = require("node:assert");
const { formatPrice } = require("./prices.js");

test("two digits after the point", () => {
  assert.strictEqual(formatPrice(1250), "12.50 EUR");
});

test("a leading zero is kept", () => {
  assert.strictEqual(formatPrice(1205), "12.05 EUR");
});
