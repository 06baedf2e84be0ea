// Prices as people read them.

function formatPrice(cents) {
  const euros = Math.floor(cents / 100);
  const rest = cents % 100;
  return `${euros}.${rest} EUR`;
}

module.exports = { formatPrice };
