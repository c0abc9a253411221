// An observer of package truth: what a public counter of tokens has of a conversation. It is installed elsewhere, and
// OBSERVERS is that folder:
//
//   npm install --prefix ~/observers ccusage@18.0.11 llm-usage-metrics@0.8.0
//   OBSERVERS=~/observers go run ./bench/cmd/truth -observer 'ccusage=node bench/truth/usage.mjs ccusage'
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const [counter, format, folder] = process.argv.slice(2);
const home = join(folder, "files/home/ada");
const run = (name, args, env) =>
  JSON.parse(execFileSync(process.execPath, [join(process.env.OBSERVERS, "node_modules/.bin", name), ...args],
    { env: { ...process.env, HOME: home, ...env }, stdio: ["ignore", "pipe", "ignore"] }).toString() || "null");

const counters = {
  ccusage() {
    if (format !== "claude-code") return null;
    const t = run("ccusage", ["daily", "--json", "--offline"], { CLAUDE_CONFIG_DIR: join(home, ".claude") })?.totals;
    return t && { input: t.inputTokens, output: t.outputTokens, cache_read: t.cacheReadTokens, cache_write: t.cacheCreationTokens };
  },
  "llm-usage"() {
    const [source, path] = {
      "claude-code": ["claude", ".claude/projects"], codex: ["codex", ".codex/sessions"], "gemini-cli": ["gemini", ".gemini"], pi: ["pi", ".pi/agent/sessions"],
    }[format] ?? [];
    if (!source) return null;
    const found = run("llm-usage", ["monthly", "--json", "--source", source, "--source-dir", `${source}=${join(home, path)}`, "--pricing-offline", "--ignore-pricing-failures"], {});
    const t = [found].flat().concat(Object.values(found).flat()).find((r) => r?.rowType === "grand_total" && r.totalTokens);
    if (!t) return null;
    const within = t.totalTokens === t.inputTokens + t.outputTokens + t.cacheReadTokens + t.cacheWriteTokens; // reasoning is part of the output
    return { input: t.inputTokens, output: t.outputTokens - (within ? t.reasoningTokens : 0), cache_read: t.cacheReadTokens, cache_write: t.cacheWriteTokens, reasoning: t.reasoningTokens };
  },
};

const tokens = existsSync(home) ? counters[counter]() : null;
if (tokens) {
  for (const k of ["input", "output", "cache_read", "cache_write", "reasoning"]) tokens[k] ??= 0;
  console.log(JSON.stringify({ tokens }));
}
