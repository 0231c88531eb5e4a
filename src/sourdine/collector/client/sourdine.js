// Answers made private on the device that gives them, as Python's `sourdine.local` makes them, bit by bit.
//
// A question names an oracle and its exact parameters. The noise comes from a keyed stream (AES-256 in counter
// mode, through WebCrypto) and is compared with whole numbers: probabilities are computed here, in big integers
// with proven bounds, from the epsilon that the question declares. No float decides anything, and nothing that
// a collector sends is trusted with it. The secret of the device never leaves it.

const SUBTLE = globalThis.crypto?.subtle; // not there on a page without a secure connection
const TEXT = new TextEncoder();

export class SourdineError extends Error {
  constructor(message, code = "refused") {
    super(message);
    this.name = "SourdineError";
    this.code = code;
  }
}

// ---------------------------------------------------------------------------------------------------------
// Exact numbers

/** A whole number or fraction as files write it: "3", "-3/2". */
function fraction(text, field) {
  const match = typeof text === "string" && /^(-?\d{1,400})(?:\/(\d{1,400}))?$/.exec(text);
  if (!match || (match[2] !== undefined && BigInt(match[2]) === 0n)) {
    throw new SourdineError(`The question's '${field}' is no fraction. Get the question again.`);
  }
  return { n: BigInt(match[1]), d: BigInt(match[2] ?? "1") };
}

const whole = (n) => ({ n: BigInt(n), d: 1n });
const times = (a, b) => ({ n: a.n * b.n, d: a.d * b.d });
const less = (a, b) => a.n * b.d < b.n * a.d;
const floorOf = (n, d) => (n >= 0n ? n / d : -((-n + d - 1n) / d));
const bitLength = (n) => (n === 0n ? 0 : n.toString(2).length);

/** Bounds lower <= 2^bits e^x <= upper, for x >= 0: a Taylor series of x/2^s, squared s times. */
function expBounds(x, bits) {
  const halvings = bitLength(x.n / x.d) + 8;
  const guard = BigInt(bits + 2 * halvings + 16);
  const one = 1n << guard;
  const yLow = (x.n << guard) / (x.d << BigInt(halvings));
  const series = (y, up) => {
    let term = one, sum = one;
    for (let k = 1n; term > 0n; k += 1n) {
      term = (term * y) >> guard;
      term = up ? term / k + 1n : term / k;
      if (up && term === 1n) break; // from here on all terms together are below one unit: y < 2^-8
      sum += term;
    }
    return up ? sum + 4n : sum;
  };
  let low = series(yLow, false), high = series(yLow + 1n, true);
  for (let i = 0; i < halvings; i += 1) {
    low = (low * low) >> guard;
    high = ((high * high) >> guard) + 1n;
  }
  return { low: low >> (guard - BigInt(bits)), high: (high >> (guard - BigInt(bits))) + 1n };
}

/**
 * A law by its cumulative probabilities (a + b E)/(c + d E), E = e^x: floors of 2^bits times them, certified.
 * They only rise or only fall with E, so that equal floors at both bounds of E are the floor.
 */
class Law {
  constructor(x, cumulative) {
    this.x = x;
    this.cumulative = cumulative;
    this.cache = new Map();
  }

  floors(bits) {
    if (!this.cache.has(bits)) this.cache.set(bits, this.certify(bits));
    return this.cache.get(bits);
  }

  certify(bits) {
    const size = BigInt(bits);
    for (let guard = 64; ; guard *= 2) {
      const precision = bits + guard;
      const { low, high } = this.x ? expBounds(this.x, precision) : { low: 0n, high: 0n };
      const unit = 1n << BigInt(precision);
      const at = (E, [a, b, c, d]) => ((a * unit + b * E) << size) / (c * unit + d * E);
      const floors = this.cumulative.map((terms) => [at(low, terms), at(high, terms)]);
      if (floors.every(([one, other]) => one === other)) return floors.map(([one]) => one);
    }
  }
}

/** True with odds (n/d) e^x, x >= 0: the cumulative probability of false is d/(d + n E). */
const oddsLaw = (x, n, d) => new Law(x, [[BigInt(d), 0n, BigInt(d), BigInt(n)]]);
/** True with probability n/d: false with 1 - n/d. */
const shareLaw = ({ n, d }) => new Law(null, [[d - n, 0n, d, 0n]]);
/** The binary digits of a probability, for packed coins: first(bits) = floor(2^bits p). */
const digitsOfOdds = (x) => new Law(x, [[1n, 0n, 1n, 1n]]); // p = 1/(1 + e^x)
const digitsOfShare = ({ n, d }) => new Law(null, [[n, 0n, d, 0n]]);

// ---------------------------------------------------------------------------------------------------------
// Words of a keyed stream, and what is drawn from them: as Python's core/randomness does, word for word

class Exhausted extends Error {}

/** The 64-bit words of a stream of bytes, the lowest byte first. */
export class Words {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  take(count) {
    const start = this.at;
    if (start + 8 * count > this.bytes.length) throw new Exhausted();
    this.at += 8 * count;
    return start;
  }

  next() {
    return this.view.getBigUint64(this.take(1), true);
  }

  /** The low 16 or 32 bits of the next word. */
  short(size) {
    const start = this.take(1);
    return size === 16 ? this.view.getUint16(start, true) : this.view.getUint32(start, true);
  }

  run(count) {
    const start = this.take(count);
    return this.bytes.subarray(start, start + 8 * count);
  }
}

/** A number below size, all equally likely: a short word's first bits, drawn again where too large. */
function uniform(size, words) {
  const length = size > 1 ? 32 - Math.clz32(size - 1) : 0;
  if (length === 0) return 0;
  const kind = size < 65536 ? 16 : 32;
  for (;;) {
    const drawn = words.short(kind) >>> (kind - length);
    if (drawn < size) return drawn;
  }
}

/** An outcome of a law: how many cumulative probabilities lie below a uniform number, of 64 bits or more. */
function outcome(law, words) {
  const cell = BigInt(words.short(16));
  let word = (words.next() >> 16n) | (cell << 48n);
  const thresholds = law.floors(64);
  let low = 0, high = thresholds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (thresholds[middle] < word) low = middle + 1;
    else high = middle;
  }
  const tie = thresholds[Math.min(low, thresholds.length - 1)] === word;
  if (!tie && !(low > 0 && thresholds[low - 1] + 1n === word)) return low;
  for (let bits = 128; ; bits += 64) {
    word = (word << 64n) | words.next();
    const finer = law.floors(bits);
    const settled = finer.findIndex((floor) => word <= floor);
    if (settled < 0) return finer.length;
    if (word < finer[settled]) return settled;
  }
}

const coin = (law, words) => outcome(law, words) === 1;

const ALL = 12; // digits that all packed coins pass
const RARE = 44;

function places(count) {
  const mean = (count * 64) / 4096;
  return Math.min(count, Math.ceil(mean + RARE / 3 + Math.sqrt((RARE * RARE) / 9 + 2 * mean * RARE)));
}

/** Which digits of p differ from the one before, 64 of them after the first of step s. */
function turns(digits, step) {
  const bits = 64 * (step + 1) + 1;
  const first = digits.floors(bits)[0];
  const differ = first ^ (first >> 1n);
  return Array.from({ length: 65 }, (_, i) => ((differ >> BigInt(64 - i)) & 1n) === 1n);
}

/** 64 coins in each of count words, as bytes: digit by digit, a coin stays open while it agrees with p. */
function packedCoins(digits, count, words) {
  const [begin, ...first] = turns(digits, 0);
  const heads = new Uint8Array(8 * count).fill(begin ? 255 : 0);
  const open = new Uint8Array(8 * count).fill(255);
  pass(heads, open, first.slice(0, ALL), words);
  const todo = [];
  for (let i = 0; i < count; i += 1) if (anyOpen(open, i)) todo.push(i);
  const size = Math.max(places(count), todo.length);
  const someHeads = new Uint8Array(8 * size), someOpen = new Uint8Array(8 * size);
  todo.forEach((i, place) => {
    someHeads.set(heads.subarray(8 * i, 8 * i + 8), 8 * place);
    someOpen.set(open.subarray(8 * i, 8 * i + 8), 8 * place);
  });
  pass(someHeads, someOpen, first.slice(ALL), words);
  for (let step = 1; someOpen.some((byte) => byte !== 0); step += 1) {
    pass(someHeads, someOpen, turns(digits, step).slice(1), words);
  }
  todo.forEach((i, place) => heads.set(someHeads.subarray(8 * place, 8 * place + 8), 8 * i));
  return heads;
}

const anyOpen = (open, i) => open.subarray(8 * i, 8 * i + 8).some((byte) => byte !== 0);

function pass(heads, open, turning, words) {
  const count = open.length / 8;
  for (const turn of turning) {
    const drawn = words.run(count);
    for (let i = 0; i < open.length; i += 1) {
      open[i] &= drawn[i];
      if (turn) heads[i] ^= open[i];
    }
  }
}

/** Packed coins of probability numerator/2^digits: from the last digit on, 'or' for a 1 and 'and' for a 0. */
function dyadicCoins(numerator, digits, count, words) {
  if (numerator >> BigInt(digits)) return new Uint8Array(8 * count).fill(255);
  const out = new Uint8Array(8 * count);
  for (let j = 0; j < digits; j += 1) {
    const drawn = words.run(count), or = (numerator >> BigInt(j)) & 1n;
    for (let i = 0; i < out.length; i += 1) out[i] = or ? out[i] | drawn[i] : out[i] & drawn[i];
  }
  return out;
}

function shareCoins(share, count, words) {
  const short = bitLength(share.d) - 1;
  return share.d === 1n << BigInt(short) && short < ALL
    ? dyadicCoins(share.n, short, count, words)
    : packedCoins(digitsOfShare(share), count, words);
}

// ---------------------------------------------------------------------------------------------------------
// Finite fields: as Python's local/frequency/field

class Field {
  static known = new Map();

  static of(order) {
    if (!Field.known.has(order)) Field.known.set(order, new Field(order));
    return Field.known.get(order);
  }

  constructor(order) {
    this.order = order;
    this.prime = primeOf(order);
    this.degree = Math.round(Math.log(order) / Math.log(this.prime));
    this.powers = this.generate();
    this.logs = new Array(order).fill(0);
    this.powers.forEach((power, i) => { this.logs[power] = i; });
  }

  digitwise(a, b, act) {
    let sum = 0, place = 1;
    for (let i = 0; i < this.degree; i += 1, place *= this.prime) {
      sum += (act(Math.floor(a / place) % this.prime, Math.floor(b / place) % this.prime) % this.prime) * place;
    }
    return sum;
  }

  add(a, b) {
    return this.digitwise(a, b, (x, y) => x + y);
  }

  minus(a) {
    return this.digitwise(a, 0, (x) => this.prime - x);
  }

  multiply(a, b) {
    return a && b ? this.powers[(this.logs[a] + this.logs[b]) % (this.order - 1)] : 0;
  }

  inverse(a) {
    return this.powers[(this.order - 1 - this.logs[a]) % (this.order - 1)];
  }

  generate() {
    const top = this.order / this.prime;
    for (let c = 1; c < this.order; c += 1) {
      const powers = [1], seen = new Set(powers);
      while (powers.length < this.order - 1) {
        const last = powers[powers.length - 1], high = Math.floor(last / top);
        const next = this.add((last % top) * this.prime, this.digitwise(c, 0, (x) => x * high));
        powers.push(next);
        seen.add(next);
      }
      if (seen.size === this.order - 1) return powers;
    }
    throw new SourdineError("Every finite field has a generator.");
  }

  dot(one, other, length) {
    let sum = 0;
    for (let i = 0; i < length; i += 1) {
      sum = this.add(sum, this.multiply(one % this.order, other % this.order));
      one = Math.floor(one / this.order);
      other = Math.floor(other / this.order);
    }
    return sum;
  }
}

function primeOf(order) {
  let prime = 2;
  while (prime < order && order % prime) prime += 1;
  let rest = order;
  while (rest % prime === 0) rest /= prime;
  return rest === 1 ? prime : null;
}

// ---------------------------------------------------------------------------------------------------------
// Oracles: how a report is drawn, and how many bytes it has

const MOST_EPSILON = whole(512);
const MOST_CODES = 2 ** 26;

/** A whole number of a description, within bounds. */
function integer(description, field, least, most) {
  const value = description[field];
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new SourdineError(
      `The question's '${field}' must be a whole number from ${least} to ${most}. Get the question again.`,
    );
  }
  return value;
}

function epsilonOf(description) {
  const epsilon = fraction(description.epsilon, "epsilon");
  if (epsilon.n <= 0n || less(MOST_EPSILON, epsilon) || less(epsilon, { n: 1n, d: 1n << 20n })) {
    throw new SourdineError("The question's 'epsilon' must be from 2^-20 to 512. Get the question again.");
  }
  return epsilon;
}

function shareOf(description, field, least = 0n) {
  const share = fraction(description[field], field);
  if (share.n < least || share.n > share.d) {
    throw new SourdineError(`The question's '${field}' is no probability. Get the question again.`);
  }
  return share;
}

const widthOfCodes = (codes) => Math.max(1, Math.ceil((32 - Math.clz32(codes - 1)) / 8));

function packedCode(code, width) {
  const row = new Uint8Array(width);
  for (let i = width - 1, rest = code; i >= 0; i -= 1, rest = Math.floor(rest / 256)) row[i] = rest % 256;
  return row;
}

/** Oracles of categories 0 .. k-1. */
class Categories {
  constructor(description, most = 1 << 24) {
    this.categories = integer(description, "categories", 2, most);
    this.price = "epsilon" in description ? nearest(epsilonOf(description)) : Infinity; // of one answer, ever
  }

  /** The answer in the one form that is hashed and sampled. */
  known(value) {
    if (!Number.isInteger(value) || value < 0 || value >= this.categories) {
      throw new SourdineError(`The answer must be a category from 0 to ${this.categories - 1}. Nothing was made.`);
    }
    return value;
  }

  hashed(value) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigInt64(0, BigInt(value), true);
    return [TEXT.encode("<i8"), bytes];
  }
}

class Coded extends Categories {
  get width() {
    return widthOfCodes(this.codes);
  }

  sample(value, words) {
    return packedCode(this.code(value, words), this.width);
  }
}

class Kary extends Coded {
  constructor(description) {
    super(description);
    this.codes = this.categories;
    this.laws = { truth: oddsLaw(epsilonOf(description), 1, this.categories - 1) };
  }

  code(value, words) {
    const truth = coin(this.laws.truth, words);
    const other = uniform(this.categories - 1, words);
    return truth ? value : other + (other >= value ? 1 : 0);
  }
}

class Hashing extends Coded {
  constructor(description) {
    super(description);
    const g = integer(description, "groups", 2, 512), epsilon = epsilonOf(description);
    this.groups = g;
    this.digits = 1;
    while (g ** this.digits < this.categories) this.digits += 1;
    if (primeOf(g) === null || g ** (1 + this.digits) > MOST_CODES) {
      throw new SourdineError("The question's 'groups' are none that this oracle has. Get the question again.");
    }
    this.trivial = description.trivial !== false;
    this.codes = (g ** this.digits - (this.trivial ? 0 : 1)) * g;
    this.field = Field.of(g);
    const total = BigInt(g - 1);
    const cumulative = Array.from({ length: g - 1 }, (_, i) => [BigInt(i), 1n, total, 1n]);
    this.laws = { shift: new Law(epsilon, cumulative) };
  }

  code(value, words) {
    const least = this.trivial ? 0 : 1;
    const drawn = uniform(this.groups ** this.digits - least, words), seed = drawn + least;
    const shift = outcome(this.laws.shift, words);
    return drawn * this.groups + this.field.add(this.field.dot(seed, value, this.digits), shift);
  }
}

class Hadamard extends Coded {
  constructor(description) {
    super(description);
    const epsilon = epsilonOf(description);
    this.blocks = integer(description, "blocks", 1, this.categories);
    this.columns = 2 ** (32 - Math.clz32(Math.ceil(this.categories / this.blocks)));
    this.leftOut = this.blocks === 1 && description.trivial === false ? 1 : 0;
    this.codes = this.blocks * this.columns - this.leftOut;
    const others = BigInt(2 * (this.blocks - 1));
    const all = others + 1n;
    const cumulative = others ? [[0n, 1n, all, 1n], [1n, 1n, all, 1n]] : [[0n, 1n, 1n, 1n]];
    this.laws = { way: new Law(epsilon, cumulative) };
  }

  code(value, words) {
    const row = 1 + Math.floor(value / this.blocks);
    for (;;) {
      const way = outcome(this.laws.way, words);
      let column = uniform(this.columns, words);
      if (way < 2 && parity(row & column) !== way) column ^= row & -row;
      const away = 1 + uniform(Math.max(1, this.blocks - 1), words);
      const block = ((value % this.blocks) + (way < 2 ? 0 : away)) % this.blocks;
      if (column !== 0 || !this.leftOut) return block * this.columns + column - this.leftOut;
    }
  }
}

function parity(number) {
  for (const shift of [16, 8, 4, 2, 1]) number ^= number >>> shift;
  return number & 1;
}

class Projective extends Coded {
  constructor(description) {
    super(description);
    const g = integer(description, "order", 2, 512), epsilon = epsilonOf(description);
    this.order = g;
    this.coordinates = 2;
    while (this.points(this.coordinates) < this.categories) this.coordinates += 1;
    if (primeOf(g) === null || g ** this.coordinates > MOST_CODES) {
      throw new SourdineError("The question's 'order' is none that this oracle has. Get the question again.");
    }
    this.codes = this.points(this.coordinates);
    this.field = Field.of(g);
    const rest = this.coordinates - 1;
    this.laws = { touching: oddsLaw(epsilon, this.points(rest), g ** rest) };
  }

  points(coordinates) {
    return (this.order ** coordinates - 1) / (this.order - 1);
  }

  code(value, words) {
    const g = this.order, rest = this.coordinates - 1;
    const touching = coin(this.laws.touching, words);
    const inside = this.vector(uniform(this.points(rest), words));
    const outside = uniform(g ** rest, words);
    const drawn = touching ? inside : outside;
    const point = this.vector(value);
    const place = this.leading(point);
    const high = Math.floor(drawn / place), low = drawn % place;
    const product = this.field.dot(low, point - place, rest);
    const solved = this.field.add(touching ? 0 : 1, this.field.minus(product));
    return this.number((high * g + solved) * place + low);
  }

  /** The vector of a point's number, whose first coordinate other than 0 is 1. */
  vector(number) {
    let place = 1;
    while ((place * this.order - 1) / (this.order - 1) <= number) place *= this.order;
    return number + place - (place - 1) / (this.order - 1);
  }

  leading(vector) {
    let place = 1;
    while (place * this.order <= vector) place *= this.order;
    return place;
  }

  number(vector) {
    const place = this.leading(vector);
    const factor = this.field.inverse(Math.floor(vector / place));
    let point = 0;
    for (let at = 1, rest = vector; rest > 0; at *= this.order, rest = Math.floor(rest / this.order)) {
      point += at * this.field.multiply(factor, rest % this.order);
    }
    return point - place + (place - 1) / (this.order - 1);
  }
}

/** Oracles whose report has one bit a category, the first one highest. */
class Bitwise extends Categories {
  constructor(description) {
    super(description, 1 << 20);
    this.width = Math.ceil(this.categories / 8);
    this.count = Math.ceil(this.width / 8);
  }

  trimmed(bytes) {
    const row = bytes.slice(0, this.width);
    row[this.width - 1] &= 256 - (1 << (8 * this.width - this.categories));
    return row;
  }
}

const has = (row, place) => (row[place >> 3] & (128 >> (place & 7))) !== 0;
function put(row, place, on) {
  if (on) row[place >> 3] |= 128 >> (place & 7);
  else row[place >> 3] &= ~(128 >> (place & 7));
}

class Unary extends Bitwise {
  constructor(description, symmetric) {
    super(description);
    const epsilon = epsilonOf(description);
    const odds = symmetric ? times(epsilon, { n: 1n, d: 2n }) : epsilon;
    this.laws = { noise: digitsOfOdds(odds) };
    if (symmetric) this.laws.truth = oddsLaw(odds, 1, 1);
  }

  sample(value, words) {
    const row = this.trimmed(packedCoins(this.laws.noise, this.count, words));
    put(row, value, this.laws.truth ? coin(this.laws.truth, words) : (words.run(1)[0] & 128) !== 0);
    return row;
  }
}

class Subset extends Bitwise {
  constructor(description, beside) {
    super(description);
    this.size = integer(description, "size", 1, Math.floor(this.categories / 2));
    this.laws = { among: oddsLaw(epsilonOf(description), this.size, this.categories - this.size) };
    this.plan = Subset.checked(beside?.plan, this.size - 1, this.categories);
  }

  /** How a set begins. Every plan gives a uniformly random set; a bad one would only never end. */
  static checked(plan, size, of) {
    const fields = ["numerator", "digits", "least", "most"];
    if (!plan || !fields.every((field) => Number.isInteger(plan[field]))) {
      throw new SourdineError("The question comes without the plan of its sets. Get it from the collector again.");
    }
    const { numerator, digits, least, most } = plan;
    const mean = (of * numerator) / 2 ** digits;
    const ends = numerator >= 0 && digits >= 0 && digits <= 30 && numerator <= 2 ** digits;
    if (!ends || least > 0 || most < 0 || size - mean > most || size - mean < least) {
      throw new SourdineError("The plan of the question's sets would not end. Get it from the collector again.");
    }
    return plan;
  }

  sample(value, words) {
    const among = coin(this.laws.among, words);
    const { row, last, before } = this.set(this.size + 1, words);
    const surplus = (among ? 1 : 0) + (has(row, value) ? 0 : 1);
    put(row, value, among);
    if (surplus > 0) put(row, last === value ? before : last, false);
    if (surplus > 1) put(row, before, false);
    return row.slice(0, this.width);
  }

  /** A uniformly random set, and the two elements that came in last. */
  set(size, words) {
    const row = this.tossed(words);
    let missing = size - 2 - ones(row);
    while (missing > this.plan.most || missing < this.plan.least) {
      row.set(this.tossed(words));
      missing = size - 2 - ones(row);
    }
    this.mend(row, missing, words);
    const before = this.putIn(row, words);
    return { row, before, last: this.putIn(row, words) };
  }

  tossed(words) {
    const wide = Math.ceil(this.categories / 64);
    const row = dyadicCoins(BigInt(this.plan.numerator), this.plan.digits, wide, words);
    for (let i = this.categories; i < 64 * wide; i += 1) put(row, i, false);
    return row;
  }

  mend(row, missing, words) {
    const out = missing < 0;
    let left = Math.abs(missing);
    do {
      const drawn = words.run(2);
      const view = new DataView(drawn.buffer, drawn.byteOffset, 16);
      for (let i = 0; i < 4; i += 1) {
        const element = this.element(view.getUint32(4 * i, true));
        if (element >= 0 && left > 0 && has(row, element) === out) {
          put(row, element, !out);
          left -= 1;
        }
      }
    } while (left > 0);
  }

  putIn(row, words) {
    for (;;) {
      const element = this.element(words.short(32));
      if (element >= 0 && !has(row, element)) {
        put(row, element, true);
        return element;
      }
    }
  }

  /** The high half of a 32-bit word times the number of elements; -1 where that would not be fair. */
  element(word) {
    const product = BigInt(word) * BigInt(this.categories);
    const fair = Number(product & 0xffffffffn) >= 2 ** 32 % this.categories;
    return fair ? Number(product >> 32n) : -1;
  }
}

function ones(row) {
  let count = 0;
  for (let byte of row) for (; byte; byte &= byte - 1) count += 1;
  return count;
}

/** Basic RAPPOR: a permanent response to each bit, derived from the secret, and a fresh one to that. */
class Rappor extends Bitwise {
  constructor(description, again) {
    super(description);
    const f = shareOf(description, "f", again ? 0n : 1n);
    this.flip = { n: f.n, d: 2n * f.d };
    this.price = 2 * Math.log(nearest({ n: this.flip.d - this.flip.n, d: this.flip.n || 1n }));
    if (f.n === 0n) this.price = Infinity; // without a permanent response, endless reports tell all
    this.again = again ? { p: shareOf(description, "p", 1n), q: shareOf(description, "q", 1n) } : null;
    if (again && !less(this.again.p, this.again.q)) {
      throw new SourdineError("The question's 'q' must be above its 'p'. Get the question again.");
    }
    this.laws = {};
  }

  filter(value) {
    const row = new Uint8Array(this.width);
    put(row, value, true);
    return row;
  }

  /** Coin i is whether the number that begins with word i, highest byte first, is below f/2. */
  permanent(value, stream) {
    const row = this.filter(value), view = new DataView(stream.buffer, stream.byteOffset, stream.length);
    let used = this.categories;
    const word = (i) => {
      if (8 * (i + 1) > stream.length) throw new Exhausted();
      return view.getBigUint64(8 * i, false);
    };
    for (let i = 0; i < this.categories; i += 1) {
      let { n, d } = this.flip, drawn = word(i), cut = (n << 64n) / d;
      for (n = (n << 64n) % d; drawn === cut && n > 0n; n = (n << 64n) % d) {
        drawn = word(used);
        used += 1;
        cut = (n << 64n) / d;
      }
      if (drawn < cut) put(row, i, !has(row, i));
    }
    return row;
  }

  instantaneous(row, words) {
    if (!this.again) return row;
    const likely = shareCoins(this.again.q, this.count, words);
    const unlikely = shareCoins(this.again.p, this.count, words);
    return this.trimmed(row.map((byte, i) => (byte & likely[i]) | (~byte & unlikely[i])));
  }
}

/** Oracles of numbers in [lower, upper], on a grid. */
class Numeric {
  constructor(description, mostCells) {
    this.lower = fraction(description.lower, "lower");
    this.upper = fraction(description.upper, "upper");
    this.cells = integer(description, "cells", 1, mostCells);
    if (!less(this.lower, this.upper)) {
      throw new SourdineError("The question's 'upper' must be above its 'lower'. Get the question again.");
    }
    this.epsilon = epsilonOf(description);
    this.price = nearest(this.epsilon);
    const ends = [nearest(this.lower), nearest(this.upper)], step = this.perUnit(mostCells * 1024);
    const finite = step > 0 && ends.every((end) => Number.isFinite(end * step));
    if (!finite || ends[0] >= ends[1]) { // else a place would be no number, and noise around it none either
      throw new SourdineError("The question's range is too narrow or too wide for numbers. Get the question again.");
    }
  }

  /** Cells for each unit of a value. */
  perUnit(cells) {
    const length = { n: this.upper.n * this.lower.d - this.lower.n * this.upper.d, d: this.lower.d * this.upper.d };
    return nearest({ n: BigInt(cells) * length.d, d: length.n });
  }

  get width() {
    return widthOfCodes(this.codes);
  }

  known(value) {
    if (typeof value !== "number" || Number.isNaN(value)) {
      throw new SourdineError("The answer must be a number. Nothing was made.");
    }
    return Math.min(Math.max(value, nearest(this.lower)), nearest(this.upper)) + 0;
  }

  hashed(value) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, value, true);
    return [TEXT.encode("<f8"), bytes];
  }

  /** The point of the grid nearest to a value, of so many cells. */
  place(value, cells) {
    const place = Math.floor((value - nearest(this.lower)) * this.perUnit(cells) + 0.5);
    return Math.min(Math.max(place, 0), cells);
  }

  sample(value, words) {
    return packedCode(this.code(value, words), this.width);
  }

  /** Which end of the range, at random by how near it is, and perhaps turned over. */
  end(place, cells, words) {
    const upper = uniform(cells, words) < place;
    return upper === coin(this.laws.truth, words) ? 1 : 0;
  }
}

class Duchi extends Numeric {
  constructor(description) {
    super(description, 1 << 28);
    this.codes = 2;
    this.laws = { truth: oddsLaw(this.epsilon, 1, 1) };
  }

  code(value, words) {
    return this.end(this.place(value, this.cells), this.cells, words);
  }
}

class Window extends Numeric {
  constructor(description, parts) {
    super(description, 1 << 10);
    this.parts = parts;
    this.window = integer(description, "window", 1, this.cells);
    this.codes = this.cells + this.window;
    this.laws = { inside: oddsLaw(this.epsilon, this.window, this.cells) };
  }

  code(value, words) {
    return this.slid(this.place(value, this.cells * this.parts), words);
  }

  /** A place of the grid beside a finer one, at random so that it is right on average; then the window. */
  slid(fine, words) {
    const rest = fine % this.parts;
    const place = (fine - rest) / this.parts + (uniform(this.parts, words) < rest ? 1 : 0);
    const inside = coin(this.laws.inside, words);
    const within = uniform(this.window, words), beside = uniform(this.cells, words);
    return inside ? place + within : beside + (beside >= place ? this.window : 0);
  }
}

class Hybrid extends Window {
  constructor(description) {
    super(description, 1024);
    this.laws.slides = shareLaw(shareOf(description, "share"));
    this.laws.truth = oddsLaw(this.epsilon, 1, 1);
    this.codes += 2;
  }

  code(value, words) {
    const cells = this.cells * this.parts, fine = this.place(value, cells);
    const slides = coin(this.laws.slides, words);
    const code = this.slid(fine, words);
    const end = this.end(fine, cells, words);
    return slides ? code : this.cells + this.window + end;
  }
}

/** Words nobody listed: the group of a prefix, of one or more parts of three letters, by local hashing. */
class WordTree {
  constructor(description) {
    const epsilon = epsilonOf(description), g = integer(description, "groups", 2, 32);
    this.letters = integer(description, "letters", 3, 12);
    const letters = typeof description.alphabet === "string" ? [...description.alphabet] : [];
    const plain = letters.every((letter) => letter.normalize("NFKC").toLowerCase() === letter);
    if (![3, 6, 12].includes(this.letters) || (g & (g - 1)) !== 0 || letters.length < 1 || letters.length > 31
        || !plain || new Set(letters).size < letters.length) {
      throw new SourdineError("The question's words are none that this oracle has. Get the question again.");
    }
    this.alphabet = letters;
    this.codes = new Map(letters.map((letter, i) => [letter, i + 1]));
    this.groups = g;
    this.levels = this.letters / 3;
    this.digits = Math.ceil(15 / Math.log2(g));
    this.seeds = g ** this.digits;
    this.width = 1 + 2 * this.levels;
    this.field = Field.of(g);
    this.price = nearest(epsilon);
    const total = BigInt(g - 1);
    this.laws = { shift: new Law(epsilon, Array.from({ length: g - 1 }, (_, i) => [BigInt(i), 1n, total, 1n])) };
  }

  /** The word as it is told: small letters of the alphabet, marks and unknown letters left out, the rest cut. */
  known(value) {
    if (typeof value !== "string") throw new SourdineError("The answer must be a word. Nothing was made.");
    const out = [];
    for (const letter of value.normalize("NFKC").toLowerCase()) {
      const known = this.codes.has(letter) ? [letter] : [...letter.normalize("NFKD")].filter((one) => this.codes.has(one));
      out.push(...known);
    }
    return out.slice(0, this.letters).join("");
  }

  parts(word) {
    const codes = [...word].map((letter) => this.codes.get(letter));
    const at = (i) => codes[i] ?? 0;
    return Array.from({ length: this.levels }, (_, i) => 1024 * at(3 * i) + 32 * at(3 * i + 1) + at(3 * i + 2));
  }

  hashed(word) {
    return [joined(...this.parts(word).map((part) => Uint8Array.of(part >> 8, part & 255)))];
  }

  sample(word, words) {
    return this.at(uniform(this.levels, words), this.known(word), words);
  }

  /** A report at a level. */
  at(level, word, words) {
    const seeds = Array.from({ length: this.levels }, () => uniform(this.seeds, words));
    let response = outcome(this.laws.shift, words);
    const row = new Uint8Array(this.width);
    this.parts(word).slice(0, level + 1).forEach((part, i) => {
      response = this.field.add(response, this.field.dot(seeds[i], part, this.digits));
      row.set([seeds[i] >> 8, seeds[i] & 255], 1 + 2 * i);
    });
    row[0] = level * this.groups + response;
    return row;
  }
}

/** The double nearest to a fraction, ties to even, as Python rounds it. */
function nearest({ n, d }) {
  if (n === 0n) return 0;
  const size = n < 0n ? -n : n;
  const shift = 55 - (bitLength(size) - bitLength(d));
  const scaled = shift > 0 ? size << BigInt(shift) : size, by = shift < 0 ? d << BigInt(-shift) : d;
  let quotient = scaled / by;
  if (scaled % by) quotient |= 1n; // below the last bit that counts: more than half, or less
  return (n < 0n ? -1 : 1) * Number(quotient) * 2 ** -shift;
}

/** What files call an oracle; what they first called it, on which its secret noise hangs; and its class. */
const ORACLES = {
  "grr/1": ["local.KaryOracle", (d) => new Kary(d)],
  "olh/1": ["local.LocalHashing", (d) => new Hashing(d)],
  "hadamard/1": ["local.HadamardResponse", (d) => new Hadamard(d)],
  "projective-geometry/1": ["local.ProjectiveGeometry", (d) => new Projective(d)],
  "sue/1": ["local.SymmetricUnary", (d) => new Unary(d, true)],
  "oue/1": ["local.OptimalUnary", (d) => new Unary(d, false)],
  "subset-selection/1": ["local.SubsetSelection", (d, beside) => new Subset(d, beside)],
  "basic-rappor/1": ["local.rappor.BasicRappor", (d) => new Rappor(d, true)],
  "basic-one-time-rappor/1": ["local.rappor.BasicOneTimeRappor", (d) => new Rappor(d, false)],
  "duchi/1": ["local.Duchi", (d) => new Duchi(d)],
  "piecewise/1": ["local.Piecewise", (d) => new Window(d, 1024)],
  "square-wave/1": ["local.SquareWave", (d) => new Window(d, 1)],
  "hybrid/1": ["local.Hybrid", (d) => new Hybrid(d)],
  "word-tree/1": ["word-tree/1", (d) => new WordTree(d)],
};

// ---------------------------------------------------------------------------------------------------------
// Questions

const FIELDS = ["fingerprint", "format", "labels", "oracle", "question"];
const FORMATS = { "sourdine local 1": 1, "sourdine local 2": 2 };

const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

function unhex(text, size) {
  if (typeof text !== "string" || !new RegExp(`^[0-9a-f]{${2 * size}}$`).test(text)) {
    throw new SourdineError(`Something is no ${size} bytes in hexadecimal digits. Get it again.`);
  }
  return Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
}

/** Plain data as the text that is hashed: fields in order, no spaces, all beyond ASCII escaped. */
function canonical(data) {
  if (Array.isArray(data)) return `[${data.map(canonical).join(",")}]`;
  if (data !== null && typeof data === "object") {
    return `{${Object.keys(data).sort().map((key) => `${canonical(key)}:${canonical(data[key])}`).join(",")}}`;
  }
  return JSON.stringify(data).replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const digest = async (data) => hex(await SUBTLE.digest("SHA-256", TEXT.encode(canonical(data))));

/** A question, checked against its own fingerprint, and all that a device needs to report on it. */
export class Question {
  /**
   * Read a specification as `sourdine local spec` writes it. What a collector sends beside it is checked:
   * thresholds and identity are computed here and must agree.
   */
  static async read(file, beside = {}, signature = "none") {
    const fields = file && typeof file === "object" ? Object.keys(file).sort() : [];
    if (fields.join() !== FIELDS.join() || !(file.format in FORMATS) || !Array.isArray(file.labels)) {
      throw new SourdineError("This is no specification of a question. Get it from the collector again.");
    }
    const { fingerprint, ...body } = file;
    const named = file.oracle?.mechanism;
    const name = Object.keys(ORACLES).find((one) => one === named || ORACLES[one][0] === named);
    if (!name) {
      throw new SourdineError("The question uses an oracle that this client does not know. Update the client.", "oracle");
    }
    const [first, make] = ORACLES[name];
    const asFirst = { ...body.oracle, mechanism: first };
    const written = FORMATS[file.format] === 1 ? asFirst : { ...body.oracle, mechanism: name };
    if ((await digest({ ...body, oracle: written })).slice(0, 16) !== fingerprint) {
      throw new SourdineError("The question does not match its own fingerprint: it was changed. Answer nothing.", "changed");
    }
    const question = new Question();
    question.name = file.question;
    question.labels = Object.freeze([...file.labels]);
    question.fingerprint = fingerprint;
    question.identity = await digest({ ...body, format: "sourdine local 1", oracle: asFirst });
    question.oracleIdentity = await digest(asFirst);
    question.oracle = make(body.oracle, { plan: planOf(beside.thresholds) });
    question.epsilon = body.oracle.epsilon ?? null;
    question.announcement = beside;
    question.signature = signature;
    question.check(beside);
    return Object.freeze(question);
  }

  check(beside) {
    if (this.labels.length && this.labels.length !== this.oracle.categories) {
      throw new SourdineError("The question has not one label for each category. Get it again.");
    }
    if (beside.identity !== undefined && beside.identity !== this.identity) {
      throw new SourdineError("The question was sent with an identity that is not its own. Answer nothing.", "changed");
    }
    for (const [name, law] of Object.entries(this.oracle.laws)) {
      const sent = beside.thresholds?.[name];
      if (sent === undefined) continue;
      const own = law.floors(256).map((floor) => floor.toString(16));
      if (!Array.isArray(sent) || sent.length !== own.length || own.some((one, i) => one !== sent[i])) {
        throw new SourdineError(
          "The question was sent with probabilities that are not those of its epsilon. Answer nothing.", "changed",
        );
      }
    }
  }

  get width() {
    return this.oracle.width;
  }

  /** An answer as people give it: a label, or a number. */
  value(answer) {
    if (!this.labels.length) return this.oracle.known(answer);
    const place = this.labels.indexOf(answer);
    if (place < 0) throw new SourdineError("The answer is none of the question's labels. Nothing was made.");
    return place;
  }

  /** The line of a report, as `sourdine local estimate` reads it. */
  line(row) {
    return `${this.fingerprint} ${hex(row)}\n`;
  }
}

function planOf(thresholds) {
  if (!thresholds?.plan) return undefined;
  const [numerator, digits, least, most] = thresholds.plan.map(Number);
  return { numerator, digits, least, most };
}

/**
 * Open what a collector announces: the question, checked, and signed by one of the pinned keys.
 *
 * `signature` of the question says what became of that: "verified"; "unsupported" where this browser cannot check
 * Ed25519, which is refused if `requireSignature`; "none" where no key was pinned.
 */
export async function openAnnouncement(file, { pins = [], requireSignature = false, mostEpsilon = null, leastBatch = 0 } = {}) {
  if (file?.format !== "sourdine announcement 1" || typeof file.announcement !== "string") {
    throw new SourdineError("This is no announcement of a question. Get it from the collector again.");
  }
  const signature = pins.length ? await verify(file, pins) : "none";
  if (signature !== "verified" && requireSignature) {
    throw new SourdineError(
      signature === "none"
        ? "A signature is required and no key is pinned to check it by. Pin the key of whoever asks."
        : "This browser cannot check Ed25519 signatures, and one is required. Update the browser.",
      "signature",
    );
  }
  const body = JSON.parse(file.announcement);
  checkTerms(body);
  const question = await Question.read(body.question, body, signature);
  const price = devicePrice(question.oracle, body), told = Number(body.price?.device);
  if (price < Infinity && !(told >= price * (1 - 1e-9))) {
    throw new SourdineError("The question costs more than it was said to. Answer nothing.", "price");
  }
  if (mostEpsilon !== null && !(Math.max(told, price) <= mostEpsilon)) {
    throw new SourdineError(`The question costs more than epsilon ${mostEpsilon} in all. Answer nothing.`, "price");
  }
  if (leastBatch > 0 && !((body.shuffle?.batch ?? 0) >= leastBatch)) {
    throw new SourdineError(`Reports are mixed among fewer than ${leastBatch}. Answer nothing.`, "batch");
  }
  return question;
}

/** Refuse terms that this client could not keep: a limit that is no number limits nothing. */
function checkTerms(body) {
  integer(body, "version", 1, 2 ** 31);
  integer(body, "answers", 1, 1 << 24);
  integer(body, "secret_days", 0, 36_600);
  const days = [body.opens, body.closes];
  const dated = days.every((day) => typeof day === "string" && /^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day)));
  if (!dated || body.closes < body.opens || !["day", "week", "month", "whole"].includes(body.period)) {
    throw new SourdineError("The question's dates or its period cannot be read. Get it from the collector again.");
  }
}

/** What all reports of a device reveal at most, by its own reckoning: no collector is believed. */
function devicePrice(oracle, { answers, secret_days, opens, closes }) {
  const days = Math.round((Date.parse(closes) - Date.parse(opens)) / DAY) + 1;
  return oracle.price * answers * (secret_days === 0 ? 1 : Math.ceil(days / secret_days));
}

/** Whether a secret has had its days: those before the question opened, when nothing was answered, do not count. */
export function isOld(day, { opens, secret_days }, now) {
  return secret_days > 0 && now - Date.parse(day < opens ? opens : day) >= secret_days * DAY;
}

async function verify(file, pins) {
  const message = TEXT.encode(`sourdine announcement/1\n${file.announcement}`);
  const signatures = Array.isArray(file.signatures) ? file.signatures : [];
  for (const pin of pins) {
    const raw = unhex(pin, 32);
    let key;
    try {
      key = await SUBTLE.importKey("raw", raw, { name: "Ed25519" }, false, ["verify"]);
    } catch (problem) {
      if (problem?.name === "NotSupportedError") return "unsupported";
      throw new SourdineError("A pinned key is none of Ed25519. Copy it again.", "signature");
    }
    const id = hex(await SUBTLE.digest("SHA-256", raw)).slice(0, 32);
    for (const one of signatures.filter((signature) => signature?.key === id)) {
      if (await SUBTLE.verify({ name: "Ed25519" }, key, unhex(one.signature, 64), message)) return "verified";
    }
  }
  throw new SourdineError("No pinned key signed this question. Answer nothing.", "signature");
}

// ---------------------------------------------------------------------------------------------------------
// Reports of one device

/** The first bytes of AES-256-CTR under a key, from counter 0. */
async function keystream(key, size) {
  const cipher = await SUBTLE.importKey("raw", key, "AES-CTR", false, ["encrypt"]);
  const algorithm = { name: "AES-CTR", counter: new Uint8Array(16), length: 64 };
  return new Uint8Array(await SUBTLE.encrypt(algorithm, cipher, new Uint8Array(size)));
}

/** Draw from a keyed stream; where its beginning does not last, the same draw is made from a longer one. */
async function drawn(key, act) {
  for (let size = 4096; ; size *= 4) {
    try {
      return act(await keystream(key, size));
    } catch (problem) {
      if (!(problem instanceof Exhausted)) throw problem;
    }
  }
}

function joined(...parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (out.set(part, at), at + part.length), 0);
  return out;
}

const bigEndian = (number) => Uint8Array.of(number >>> 24, (number >>> 16) & 255, (number >>> 8) & 255, number & 255);

/** The reports of a device with one secret: the same answer is always given the same permanent noise. */
export class Reporter {
  constructor(secret) {
    this.secret = secret;
  }

  /** Take over a secret of at least 16 bytes, as Python's `Memo` and `Device` take it. */
  static async from(bytes) {
    if (!(bytes instanceof Uint8Array) || bytes.length < 16) {
      throw new SourdineError("A secret has at least 16 bytes that nobody can guess.");
    }
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    return new Reporter(await SUBTLE.importKey("raw", bytes, algorithm, false, ["sign"]));
  }

  /** A new secret that no script can read, not even this one: a key that cannot be exported. */
  static async create() {
    return new Reporter(await SUBTLE.generateKey({ name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]));
  }

  async mac(...parts) {
    return new Uint8Array(await SUBTLE.sign("HMAC", this.secret, joined(...parts)));
  }

  /**
   * The packed report of a value. `fresh` is the key of RAPPOR's second response, random unless a test gives it;
   * the other oracles have none, and always give the same report on the same answer.
   */
  async row(question, value, fresh = globalThis.crypto.getRandomValues(new Uint8Array(32))) {
    return this.again(question, await this.permanent(question, value), fresh);
  }

  /** What is drawn once for an answer and for ever: the report itself, but for RAPPOR. */
  async permanent(question, value) {
    const { oracle } = question;
    const known = oracle.known(value);
    if (oracle instanceof Rappor) return this.rappor(question, known);
    if (oracle instanceof WordTree) return this.word(question, known);
    const key = await this.mac(TEXT.encode("sourdine memo 1\0"), TEXT.encode(question.identity), ...oracle.hashed(known));
    return drawn(key, (bytes) => oracle.sample(known, new Words(bytes)));
  }

  /** The report that is made of a permanent response, once more: RAPPOR's second response is drawn anew. */
  async again({ oracle }, permanent, fresh = globalThis.crypto.getRandomValues(new Uint8Array(32))) {
    if (!(oracle instanceof Rappor)) return permanent;
    return drawn(fresh, (bytes) => oracle.instantaneous(permanent, new Words(bytes)));
  }

  /** The report of a word: its level hangs on the secret alone, or reports on several words would tell more. */
  async word(question, word) {
    const { oracle } = question, identity = TEXT.encode(question.identity);
    const [level] = await this.mac(TEXT.encode("sourdine words level 1\0"), identity);
    const key = await this.mac(TEXT.encode("sourdine words 1\0"), identity, ...oracle.hashed(word));
    return drawn(key, (bytes) => oracle.at(level % oracle.levels, word, new Words(bytes)));
  }

  async rappor(question, value) {
    const { oracle } = question;
    const parts = ["sourdine rappor 1", "permanent", question.oracleIdentity, question.identity].map((part) => TEXT.encode(part));
    const about = joined(bigEndian(0), oracle.filter(value));
    const key = await this.mac(...[...parts, about].flatMap((part) => [bigEndian(part.length), part]));
    return drawn(key, (bytes) => oracle.permanent(value, bytes));
  }

  /** One of so many places, all equally likely, the same for ever: as Python's `QuestionnaireDevice` has it. */
  async place(identity, count) {
    const key = await this.mac(TEXT.encode("sourdine questionnaire 1\0"), TEXT.encode(identity));
    return drawn(key, (bytes) => uniform(count, new Words(bytes)));
  }

  /** What tells two answers apart on this device and says nothing of them elsewhere. */
  async tag(question, value) {
    return hex(await this.mac(TEXT.encode("sourdine answer 1\0"), TEXT.encode(question.identity), ...question.oracle.hashed(value))).slice(0, 32);
  }
}

// ---------------------------------------------------------------------------------------------------------
// Tokens: the right to one report, signed blindly (RSABSSA-SHA384-PSS-Randomized of RFC 9474). WebCrypto has no
// blind signatures, so numbers are blinded here in big integers. Their time may depend on them, and they are random.

function number(bytes) {
  return BigInt(`0x${hex(bytes) || "0"}`);
}

function octets(value, length) {
  return unhex(value.toString(16).padStart(2 * length, "0"), length);
}

function power(base, exponent, modulus) {
  let out = 1n;
  for (let rest = exponent, square = base % modulus; rest > 0n; rest >>= 1n, square = (square * square) % modulus) {
    if (rest & 1n) out = (out * square) % modulus;
  }
  return out;
}

/** The inverse modulo a number, or null where there is none. */
function inverseOf(value, modulus) {
  let [a, b, x, y] = [value % modulus, modulus, 1n, 0n];
  while (a > 1n) {
    const quotient = b / a;
    [a, b, x, y] = [b - quotient * a, a, y - quotient * x, x];
    if (a === 0n) return null;
  }
  return ((x % modulus) + modulus) % modulus;
}

const sha384 = async (...parts) => new Uint8Array(await SUBTLE.digest("SHA-384", joined(...parts)));

/** EMSA-PSS with SHA-384 and MGF1 (RFC 8017), of at most so many bits. */
async function encodedMessage(message, bits, salt) {
  const length = Math.ceil(bits / 8);
  const digest384 = await sha384(new Uint8Array(8), await sha384(message), salt);
  const block = new Uint8Array(length - digest384.length - 1);
  block[block.length - salt.length - 1] = 1;
  block.set(salt, block.length - salt.length);
  for (let i = 0; 48 * i < block.length; i += 1) {
    (await sha384(digest384, bigEndian(i))).forEach((byte, j) => { if (48 * i + j < block.length) block[48 * i + j] ^= byte; });
  }
  block[0] &= 255 >> (8 * length - bits);
  return joined(block, digest384, Uint8Array.of(188));
}

const spkiOf = (key) => Uint8Array.from(key.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** The public key of tokens that an announcement states in hexadecimal digits. */
async function tokenKey(key) {
  try {
    return await SUBTLE.importKey("spki", spkiOf(key), { name: "RSA-PSS", hash: "SHA-384" }, true, ["verify"]);
  } catch {
    throw new SourdineError("The question's key of tokens is none of RSA. Get the question again.", "token");
  }
}

/** The name by which an issuer knows which of its keys a token was drawn for. */
const keyName = async (key) => hex(new Uint8Array(await SUBTLE.digest("SHA-256", spkiOf(key)))).slice(0, 16);

/** A token on its way: `blinded` goes to the issuer, all else stays here. */
export class TokenRequest {
  /** `given` has the prepared message, the salt and the inverse of the blinding, where a test gives them. */
  static async draw(key, given = {}) {
    const request = new TokenRequest();
    const random = (size) => globalThis.crypto.getRandomValues(new Uint8Array(size));
    request.key = await tokenKey(key);
    const { n, e } = await SUBTLE.exportKey("jwk", request.key);
    const plain = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
    const modulus = number(plain(n)), bits = bitLength(modulus), length = Math.ceil(bits / 8);
    if (bits < 2048 || bits > 4096 || number(plain(e)) !== 65537n) {
      throw new SourdineError("The question's key of tokens is unusual. Get the question again.", "token");
    }
    request.message = given.message ?? random(64);
    request.saltLength = (given.salt ?? { length: 48 }).length;
    const encoded = number(await encodedMessage(request.message, bits - 1, given.salt ?? random(48)));
    let factor, inverse = null;
    if (given.inverse !== undefined) [inverse, factor] = [given.inverse, inverseOf(given.inverse, modulus)];
    while (inverse === null) {
      factor = number(random(length)); // a number that is too large is drawn again, or some were likelier
      inverse = factor > 0n && factor < modulus ? inverseOf(factor, modulus) : null;
    }
    Object.assign(request, { modulus, length, inverse });
    request.blinded = octets((encoded * power(factor, 65537n, modulus)) % modulus, length);
    return request;
  }

  /** The token as a header has it; an answer that is no signature is refused. */
  async finish(signed) {
    const signature = octets((number(signed) * this.inverse) % this.modulus, this.length);
    const algorithm = { name: "RSA-PSS", saltLength: this.saltLength };
    if (signed.length !== this.length || !(await SUBTLE.verify(algorithm, this.key, signature, this.message))) {
      throw new SourdineError("The issuer's answer is no signature. Ask for the token again.", "token");
    }
    return hex(joined(this.message, signature));
  }
}

// ---------------------------------------------------------------------------------------------------------
// What stays on the device, and what is sent

const asked = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** A database of this origin: secrets that cannot be read, and submissions that were not yet taken. */
class Store {
  static async open(name) {
    if (!globalThis.indexedDB) throw noStore();
    const request = globalThis.indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("devices", { keyPath: "identity" });
      request.result.createObjectStore("queue", { keyPath: "id" });
    };
    try {
      return new Store(await asked(request));
    } catch {
      throw noStore();
    }
  }

  constructor(database) {
    this.database = database;
  }

  /** One transaction over both tables: all of it is kept, or nothing. */
  async change(act) {
    const transaction = this.database.transaction(["devices", "queue"], "readwrite", { durability: "strict" });
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new SourdineError("The browser kept nothing."));
    });
    let result;
    try {
      result = await act(transaction.objectStore("devices"), transaction.objectStore("queue"));
    } catch (problem) {
      transaction.abort();
      await done.catch(() => {});
      throw problem;
    }
    await done;
    return result;
  }
}

const noStore = () =>
  new SourdineError(
    "This browser keeps nothing for this site, so the noise of an answer would be drawn anew at each visit and "
    + "give the answer away in the end. Nothing was made. Leave the private window, or allow the site to store data.",
    "no-storage",
  );

const MOST_WAITING = 1000;
const LATE_DAYS = 8; // after a question has closed, when no collector takes a report of it
/** What a collector says of a submission that it will never take. */
const FINAL = new Set([
  "another-question", "closed", "conflict", "empty", "encoding", "large", "no-report", "one-report", "shape", "token", "type",
]);

/** The digest of a submission's id by which a collector's answers are known. */
async function answerTag(id) {
  const digest = await SUBTLE.digest("SHA-256", joined(TEXT.encode("sourdine answer\0"), unhex(id, 16)));
  return hex(new Uint8Array(digest)).slice(0, 32);
}

const DAY = 86_400_000;
const today = (now) => new Date(now).toISOString().slice(0, 10);

/** The name of the period that a moment lies in: the only time that is told apart. */
function periodOf(period, now) {
  const day = today(now);
  if (period === "whole") return "whole";
  if (period === "month") return day.slice(0, 7);
  if (period === "week") return today(now - ((new Date(now).getUTCDay() + 6) % 7) * DAY);
  return day;
}

/** Answers questions of one collector, keeps what could not be sent, and sends it again. */
export class Client {
  static async open({
    collector, pins = [], requireSignature = false, mostEpsilon = null, leastBatch = 0, budget = null,
    database = "sourdine",
  }) {
    if (!SUBTLE) {
      throw new SourdineError(
        "This page was not loaded over a secure connection, so the browser lends it no cryptography. Nothing was made. "
        + "Open it by https.",
        "insecure",
      );
    }
    const client = new Client();
    client.collector = new URL(collector, globalThis.location?.href).href.replace(/\/$/, "");
    client.terms = { pins, requireSignature, mostEpsilon, leastBatch };
    client.budget = budget;
    client.store = await Store.open(database);
    client.retryAt = 0;
    client.sending = null;
    return client;
  }

  /** A question of the collector, checked; one of an older version than was seen before is refused. */
  async question(fingerprint) {
    if (!/^[0-9a-f]{16}$/.test(fingerprint)) throw new SourdineError("A fingerprint has 16 hexadecimal digits.");
    const answer = await fetch(`${this.collector}/v1/questions/${fingerprint}`, { credentials: "omit", referrerPolicy: "no-referrer" });
    if (!answer.ok) throw new SourdineError("The collector does not have this question. Check its fingerprint.", "unknown");
    const question = await openAnnouncement(await answer.json(), this.terms);
    if (question.fingerprint !== fingerprint) {
      throw new SourdineError("The collector sent another question than was asked for. Answer nothing.", "changed");
    }
    const secret = (await Reporter.create()).secret; // before the transaction, which does not wait for it
    await this.store.change(async (devices) => {
      const known = await asked(devices.get(question.identity));
      const { version } = question.announcement;
      if (known && known.version > version) {
        throw new SourdineError("The collector sent an older version of the question. Answer nothing.", "older");
      }
      devices.put(known ? { ...known, version } : { identity: question.identity, ...begun(secret), version });
    });
    return question;
  }

  /**
   * Answer a question: the report is made here, kept until the collector has it, and sent when it can be.
   *
   * Once a period: a second one is refused. The period that counts is also the one in which the collector got a
   * report, so that none ever gets two of a device. A new answer beyond what the question or the budget allows is not
   * refused, since whoever waits for the report would see that: the last report goes out once more, and `earlier` tells
   * so to the person. Nothing that is sent, or is not sent, may hang on it.
   */
  async answer(question, answer) {
    const terms = question.announcement, now = Date.now();
    if (today(now) < terms.opens || today(now) > terms.closes) {
      throw new SourdineError("The question is not open today. Nothing was made.", "closed");
    }
    const known = question.oracle.known(question.value(answer));
    for (;;) {
      const made = await this.prepared(question, known, await this.device(question, now));
      const queued = await this.store.change((devices, queue) => this.queued(question, made, now, devices, queue));
      if (queued) return { ...queued, sent: this.send() }; // else another tab answered meanwhile, and all is made anew
    }
  }

  /** The report of an answer, and beside it the one that goes out where that may not: before the transaction, which waits for neither. */
  async prepared(question, known, device) {
    const reporter = new Reporter(device.secret);
    const permanent = await reporter.permanent(question, known);
    const standing = device.standing ? unhex(device.standing, device.standing.length / 2) : permanent;
    return {
      device,
      tag: await reporter.tag(question, known),
      permanent: hex(permanent),
      row: await reporter.again(question, permanent),
      earlierRow: await reporter.again(question, standing),
    };
  }

  /** Within a transaction: pay for an answer or let the last report stand, and put that into the queue; null where the device changed. */
  async queued(question, { device, tag, permanent, row, earlierRow }, now, devices, queue) {
    const { identity, announcement: terms } = question, period = periodOf(terms.period, now);
    const [kept, waiting] = [await asked(devices.get(identity)), await asked(queue.getAll())];
    if (!kept || kept.day !== device.day || kept.standing !== device.standing) return null;
    if (kept.period === period) {
      throw new SourdineError("This device has answered already. A second report would count it twice.", "answered");
    }
    if (waiting.some((each) => each.identity === identity)) {
      throw new SourdineError("An earlier report of this device still waits to be sent. Go online first.", "waiting");
    }
    if (waiting.length >= MOST_WAITING) throw new SourdineError("Too many reports wait to be sent. Go online first.", "full");
    if (terms.tokens && !kept.token) {
      throw new SourdineError("A report to this question needs a token. Get one with its code first.", "token");
    }
    const each = question.oracle.price, isNew = !kept.tags.includes(tag);
    const spent = total(await asked(devices.getAll())) + each;
    const within = this.budget === null || spent <= this.budget * (1 + 1e-12);
    const earlier = isNew && !(within && kept.tags.length < terms.answers);
    if (earlier && !kept.standing) { // the first answer, whichever it is
      throw new SourdineError("The answer would cost more than the budget of this device has left.", "budget");
    }
    const { token, ...rest } = kept, pays = isNew && !earlier;
    const tags = pays ? [...kept.tags, tag] : kept.tags, standing = earlier ? kept.standing : permanent;
    const paid = (kept.paid ?? 0) + (pays ? 1 : 0), sentRow = earlier ? earlierRow : row;
    const submission = {
      id: hex(globalThis.crypto.getRandomValues(new Uint8Array(16))),
      url: `${this.collector}/v1/questions/${question.fingerprint}/reports`,
      body: question.line(sentRow),
    };
    devices.put({ ...rest, name: question.name, each, paid, tags, standing, period });
    const { leastBatch } = this.terms, least = leastBatch > 0 ? { leastBatch } : {};
    queue.put({ ...submission, ...least, ...(token ? { token } : {}), identity, period: terms.period, closes: terms.closes });
    return { ...submission, row: hex(sentRow), earlier };
  }

  /**
   * Get the token of a question from its issuer, for the code that whoever asks gave to this person.
   *
   * Do it some time before answering: the issuer then learns when a code was used, and not when it was answered.
   */
  async fetchToken(question, { issuer, code }) {
    const key = question.announcement.tokens;
    if (!key) throw new SourdineError("The question takes reports without tokens.", "token");
    const fresh = await TokenRequest.draw(key);
    const request = await this.store.change(async (devices) => { // kept before it is sent, for the same one if no answer comes
      const kept = await asked(devices.get(question.identity));
      if (kept.request || kept.token) return kept.request;
      const { message, inverse, modulus, length, blinded, saltLength } = fresh;
      const drawn = { message, inverse, modulus, length, blinded, saltLength, spki: key };
      devices.put({ ...kept, request: drawn });
      return drawn;
    });
    if (!request) return;
    const place = `${new URL(issuer, globalThis.location?.href).href.replace(/\/$/, "")}/v1/questions/${question.fingerprint}/tokens`;
    const answer = await fetch(place, {
      method: "POST", body: request.blinded, credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store",
      redirect: "error",
      headers: {
        "Content-Type": "application/octet-stream",
        Authorization: `Bearer ${code}`,
        "Sourdine-Token-Key": await keyName(request.spki ?? key),
      },
    });
    const refusal = answer.ok ? null : await answer.json().catch(() => null);
    if (answer.status === 400 && refusal?.error === "key") { // drawn for a key that is out of use, and no code was used
      await this.store.change(async (devices) => {
        const { request: _, ...kept } = await asked(devices.get(question.identity));
        devices.put(kept);
      });
      throw new SourdineError("The key of tokens was changed. Get the question and the token again.", "token");
    }
    if (!answer.ok) throw new SourdineError("The issuer gave no token: the code is none, or was used elsewhere.", "token");
    const asNew = Object.assign(new TokenRequest(), request, { key: await tokenKey(request.spki ?? key) });
    const token = await asNew.finish(new Uint8Array(await answer.arrayBuffer()));
    await this.store.change(async (devices) => {
      const { request: _, ...kept } = await asked(devices.get(question.identity));
      devices.put({ ...kept, token });
    });
  }

  /** The device's secret for a question, a new one after as many days as the question declares. */
  async device(question, now) {
    const fresh = (await Reporter.create()).secret;
    return this.store.change(async (devices) => {
      const kept = await asked(devices.get(question.identity));
      const old = kept && isOld(kept.day, question.announcement, now);
      const device = kept && !old ? kept : { ...kept, identity: question.identity, ...begun(fresh), period: kept?.period ?? null };
      devices.put(device);
      return device;
    });
  }

  /**
   * The device's own ledger: of each question how many different answers it reported on, under all its secrets, and
   * what they cost. Answers themselves are not in it.
   */
  async ledger() {
    const devices = await this.store.change((all) => asked(all.getAll()));
    const paid = devices.filter((one) => one.paid);
    const entries = paid.map(({ identity, name, paid: answers, each }) => ({ identity, name, answers, epsilon: answers * each }));
    return { entries, epsilon: total(devices), budget: this.budget };
  }

  /**
   * Which of the questions of a questionnaire this device answers: one, picked by a secret of its own that stays.
   *
   * `identity` is that of Python's `Questionnaire`, and `questions` are the fingerprints in its order.
   */
  async assigned({ identity, questions }) {
    if (!/^[0-9a-f]{64}$/.test(identity) || !Array.isArray(questions) || !questions.length) {
      throw new SourdineError("This is no questionnaire. Get it again.");
    }
    const fresh = (await Reporter.create()).secret;
    const { secret } = await this.store.change(async (devices) => {
      const kept = await asked(devices.get(identity)) ?? { identity, ...begun(fresh) };
      devices.put(kept);
      return kept;
    });
    return questions[await new Reporter(secret).place(identity, questions.length)];
  }

  /** What waits to be sent. */
  async waiting() {
    return this.store.change((_, queue) => asked(queue.getAll()));
  }

  /** Send what waits; what the collector does not take now is kept under the same number. */
  send() {
    this.sending ??= this.sendAll().finally(() => { this.sending = null; });
    return this.sending;
  }

  async sendAll() {
    const outcome = { stored: 0, received: 0, kept: 0, dropped: [] };
    for (const submission of await this.waiting()) {
      const { closes } = submission, isLate = closes && today(Date.now() - LATE_DAYS * DAY) > closes;
      const status = await this.post(submission) ?? (isLate ? 410 : null); // nobody will ever take it
      if (status === null) {
        outcome.kept += 1;
        continue;
      }
      await this.store.change(async (devices, queue) => {
        const kept = await asked(devices.get(submission.identity));
        if (kept && status < 300) devices.put({ ...kept, period: periodOf(submission.period, Date.now()) });
        await asked(queue.delete(submission.id));
      });
      if (status === 202) outcome.received += 1;
      else if (status < 300) outcome.stored += 1;
      else outcome.dropped.push({ id: submission.id, status });
    }
    return outcome;
  }

  /**
   * The status that settles a submission, or null where it has to be sent again.
   *
   * A proxy, a login page and a filter answer 200, 401, 403, 404 and 413 as well as a collector does. So an answer settles
   * a submission only if it has the digest of its id, which whoever made the answer must have read, and says one of the
   * words that are final. Otherwise report and token stay.
   */
  async post({ id, url, body, token, leastBatch }) {
    if (Date.now() < this.retryAt) return null;
    try {
      const answer = await fetch(url, {
        method: "POST",
        body,
        credentials: "omit",
        referrerPolicy: "no-referrer",
        cache: "no-store",
        redirect: "error",
        headers: {
          "Content-Type": "text/plain",
          "Idempotency-Key": id,
          ...(token && { "Sourdine-Token": token }),
          ...(leastBatch && { "Sourdine-Least-Batch": String(leastBatch) }),
        },
      });
      const told = await answer.json().catch(() => null);
      if (told?.answer === await answerTag(id)) {
        const { status } = answer, isTaken = [200, 201, 202].includes(status) && told.error === undefined;
        if (isTaken || (status >= 400 && FINAL.has(told.error))) return status;
      }
      const seconds = Math.min(Math.max(Number(answer.headers.get("Retry-After")) || 1, 1), 3600);
      this.retryAt = Date.now() + seconds * 1000 * (1 + Math.random());
    } catch {
      // no answer: offline, or the collector is away; whether it has the report is not known, so it is sent again
    }
    return null;
  }

  /** Send whenever the browser comes online, and every so often; returns how to stop that. */
  keepSending(seconds = 60) {
    const send = () => { this.send().catch(() => {}); };
    globalThis.addEventListener?.("online", send);
    const timer = setInterval(send, seconds * 1000);
    send();
    return () => {
      globalThis.removeEventListener?.("online", send);
      clearInterval(timer);
    };
  }
}

const total = (devices) => devices.reduce((sum, { paid = 0, each = 0 }) => sum + (paid ? paid * each : 0), 0);
const begun = (secret) => ({ secret, day: today(Date.now()), tags: [], standing: null, period: null });
