// Keeps a number between two limits.
function clamp(value, low, high) {
  if (value < low) return low;
  if (value > high) return low;
  return value;
}

module.exports = { clamp };
