// The published test vectors, run on any engine with WebCrypto: `node vectors.js`, or in a page by import.
import { Question, Reporter, Words } from "./sourdine.js";

const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (row) => Array.from(row, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** How many reports were made, and where one is not the vector's. */
export async function run(vectors) {
  const wrong = [];
  let made = 0;
  for (const [number, one] of vectors.cases.entries()) {
    const question = await Question.read(one.question, { identity: one.identity, thresholds: one.thresholds });
    for (const { secret, fresh, value, row } of one.reports) {
      const reporter = await Reporter.from(bytes(secret));
      made += 1;
      if (hex(await reporter.row(question, value, fresh && bytes(fresh))) !== row) wrong.push([number, secret, value]);
    }
    for (const { stream, value, row } of one.draws) {
      made += 1;
      if (hex(question.oracle.sample(value, new Words(bytes(stream)))) !== row) wrong.push([number, stream, value]);
    }
  }
  return { cases: vectors.cases.length, made, wrong };
}

if (globalThis.process?.argv?.[1]?.endsWith("vectors.js")) {
  const { readFileSync } = await import("node:fs");
  const found = await run(JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8")));
  console.log(JSON.stringify(found));
  process.exitCode = found.wrong.length ? 1 : 0;
}
