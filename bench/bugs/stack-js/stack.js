class Stack {
  constructor() {
    this.items = [];
  }

  push(item) {
    this.items.push(item);
  }

  pop() {
    return this.items.pop();
  }

  peek() {
    return this.items[this.items.length];
  }

  get size() {
    return this.items.length;
  }
}

module.exports = { Stack };
