package price

import (
	"math"
	"strings"
	"testing"
	"time"
)

var autumn = time.Date(2025, 12, 1, 0, 0, 0, 0, time.UTC)

func TestBundledTable(t *testing.T) {
	table, err := Parse(strings.NewReader(bundled))
	if err != nil {
		t.Fatal(err)
	}
	if len(table.models) < 150 {
		t.Errorf("%d models", len(table.models))
	}
	for model, rows := range table.models {
		for _, p := range rows {
			if strings.HasSuffix(model, "-highspeed") { // written to the cache at the price of the slow model
				continue
			}
			if p.CacheWrite1h < p.CacheWrite || p.Input <= 0 || p.Output < p.Input || p.CacheRead > p.Input || p.CacheWrite < p.Input {
				t.Errorf("%s: %+v", model, p)
			}
		}
	}
}

func TestModelsByTheirNames(t *testing.T) {
	table := Default()
	for model, input := range map[string]float64{
		"claude-sonnet-4-5":                            3,
		"claude-sonnet-4-5-20250929":                   3,
		"anthropic/claude-sonnet-4-5-20250929":         3,
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": 3,
		"claude-opus-4-5@20251101":                     5,
		"claude-opus-4-1-20250805":                     15,
		"GPT-4o-2024-08-06":                            2.5,
		"gpt-4o-mini":                                  0.15,
		"openrouter/openai/gpt-5-mini":                 0.25,
		"claude-3-5-haiku-latest":                      0.8,
		"gpt-5-pro":                                    15, // another model than gpt-5
		// As captures have them.
		"deepseek-chat": 0.28, "models/gemini-3.1-pro-preview": 2, "claude-sonnet-4-20250514": 3, "gpt-3.5-turbo-0125": 0.5,
		"claude-opus-4-6": 5, "gemini-2.5-pro": 1.25, "gpt-5-mini-2025-08-07": 0.25, "gemini-2.5-flash": 0.3,
		"gemini-3-flash-preview": 0.5, "claude-sonnet-4.5": 3, "gpt-5.6-sol": 5, "claude-haiku-4-5-20251001": 1,
		"gemini-3-pro-preview": 2, "claude-3-5-sonnet-20240620": 3, "claude-opus-4-5-20251101": 5, "claude-opus-4-20250514": 15,
		"gemini-2.0-flash": 0.1, "gpt-5.4": 2.5, "gpt-5.5": 5, "gpt-3.5-turbo": 0.5, "claude-sonnet-4.6": 3, "gpt-4o-mini-2024-07-18": 0.15,
		"gpt-5.2": 1.75, "gpt-5-nano-2025-08-07": 0.05, "gpt-4o": 2.5, "gpt-4.1-nano-2025-04-14": 0.1, "claude-3-7-sonnet-20250219": 3,
		"gpt-5.2-codex": 1.75, "gpt-5.1": 1.25, "gpt-5-codex": 1.25, "gpt-5.1-codex-max": 1.25,
		// By the forms that sellers and releases have.
		"publishers/google/models/gemini-2.5-flash": 0.3, "gemini-2.5-pro-preview-05-06": 1.25, "gemini-2.5-flash-preview-09-2025": 0.3,
		"gemini-2.0-flash-001": 0.1, "gemini-1.5-pro-002": 1.25, "google/gemini-2.5-flash-lite-preview-06-17": 0.1,
		"global.anthropic.claude-opus-4-6-v1": 5, "anthropic.claude-3-5-sonnet-20241022-v2:0": 3, "claude-opus-4-6@default": 5,
		"arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0": 1,
		"claude-sonnet-4-5-20250929[1m]": 3, "anthropic/claude-3.7-sonnet": 3, "claude-opus-4-0": 15, "x-ai/grok-4-fast": 0.2, "grok-code-fast-1": 0.2,
		"moonshotai/kimi-k2-thinking": 0.6, "z-ai/glm-5.2": 1.4, "MiniMax-M2": 0.3, "mistral-large-2512": 0.5, "devstral-2512": 0.4, "o3-2025-04-16": 2,
		// And those that have none.
		"gpt-5-high": -1, "gpt-5-mini-fast": -1, "gemini-2.5-pro-exp-03-25": -1, "gemini-2.5": -1, "claude": -1, "claude-sonnet": -1, "claude-opus-9": -1,
		"claude-next-4.5": -1, "claude-sonnet-4-5:free": -1, "gpt-oss-120b": -1, "qwen3:14b": -1, "llama-3.3-70b": -1, "haiku": -1, "opus[1m]": -1,
		"codex-auto-review": -1, "opencode/deepseek-v4-flash-free": -1, "scripted-1": -1, "us.amazon.nova-pro-v1:0": -1, "mistral-small-latest": -1,
		"claude-sonnet-4-5-thinking-of-another": -1, "": -1,
	} {
		p, ok := table.Of(model, autumn)
		if ok != (input >= 0) || ok && p.Input != input {
			t.Errorf("%s: %+v %v, want %v", model, p, ok, input)
		}
	}
}

// TestBundledPricesAreDated: a price that has changed is the former one before its day.
func TestBundledPricesAreDated(t *testing.T) {
	table := Default()
	for _, c := range []struct {
		model, day string
		input      float64
	}{
		{"o3", "2025-06-09", 10}, {"o3", "2025-06-10", 2}, {"claude-sonnet-5", "2026-08-31", 2}, {"claude-sonnet-5", "2026-09-01", 3},
		{"deepseek-chat", "2025-09-28", 0.56}, {"deepseek-chat", "2026-05-01", 0.14}, {"gpt-5.6-luna", "2026-07-29", 1}, {"gpt-5.6-luna", "2026-07-30", 0.2},
		{"gemini-3.7-flash", "2026-12-31", 0.75}, {"gemini-3.7-flash", "2027-01-01", 1.5}, {"gemini-2.5-flash-preview-04-17", "2025-05-01", -1},
	} {
		at, err := time.Parse(time.DateOnly, c.day)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := table.Of(c.model, at); ok != (c.input >= 0) || ok && p.Input != c.input {
			t.Errorf("%s on %s: %+v %v, want %v", c.model, c.day, p, ok, c.input)
		}
	}
}

// TestCacheOfAnHour: of the tokens written to a cache, those that it keeps for an hour have a price of
// their own, where the table has one.
func TestCacheOfAnHour(t *testing.T) {
	p, _ := Default().Of("claude-sonnet-4-5-20250929", autumn)
	if got := p.Cost(Tokens{CacheWrite: 3_000_000, CacheWrite1h: 1_000_000}); got != 2*3.75+6 {
		t.Errorf("%v dollars", got)
	}
	for text, want := range map[string]float64{
		"model,from,input,output,cache_read,cache_write\ngull,,1,1,1,4\n":                  4,
		"model,from,input,output,cache_read,cache_write,cache_write_1h\ngull,,1,1,1,4,\n":  4,
		"model,from,input,output,cache_read,cache_write,cache_write_1h\ngull,,1,1,1,4,9\n": 9,
	} {
		table, err := Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := table.Of("gull", autumn); p.CacheWrite1h != want {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

// TestCostOfUsage: the cost that a record states is the cost, whatever the list has; without it the terms decide.
func TestCostOfUsage(t *testing.T) {
	for _, c := range []struct {
		model string
		Usage
		usd float64 // -1: not known
	}{
		{"gpt-5.4", Usage{Stated: 25e10}, 0.25}, {"unheard-of", Usage{Stated: 25e10}, 0.25}, {"gpt-4o", Usage{Stated: 25e10, Tier: "flex"}, 0.25},
		{"gpt-5.4", Usage{Prompt: 272_000}, 2.5}, {"gpt-5.4", Usage{Prompt: 272_001}, 5}, {"gpt-5", Usage{Tier: "flex"}, 0.625}, {"gpt-4o", Usage{Tier: "flex"}, -1}, {"unheard-of", Usage{}, -1},
	} {
		c.Tokens, c.Time = Tokens{Input: 1e6}, autumn
		if usd, ok := Default().Model(c.model).Cost(c.Usage); ok != (c.usd >= 0) || ok && math.Abs(usd-c.usd) > 1e-9 {
			t.Errorf("%s %+v: %v %v, want %v", c.model, c.Usage, usd, ok, c.usd)
		}
	}
}

// TestTermsOfARequest: the tier of the service and the size of the prompt change the price; a tier that the row does not name has none.
func TestTermsOfARequest(t *testing.T) {
	for _, c := range []struct {
		model, tier string
		prompt      uint64
		in, out     float64 // -1: no price
	}{
		{"gpt-5", "flex", 9, 0.625, 5}, {"gpt-5", "batch", 9, 0.625, 5}, {"gpt-5", "priority", 9, 2.5, 20}, {"gpt-5", "fast", 9, 2.5, 20}, {"gpt-5", "", 300_000, 1.25, 10},
		{"gpt-5", "scale", 9, -1, -1}, {"gpt-4o", "flex", 9, -1, -1}, {"gpt-5.5", "priority", 9, 12.5, 75}, {"gpt-5.4", "", 272_000, 2.5, 15}, {"gpt-5.4", "", 272_001, 5, 22.5},
		{"claude-opus-4-6", "fast", 9, 30, 150}, {"claude-opus-4-8", "fast", 9, 10, 50}, {"claude-opus-4-6", "batch+us", 9, 2.75, 13.75}, {"claude-opus-4-6", "fast+us", 9, 33, 165},
		{"claude-opus-4-6", "priority", 9, -1, -1}, {"claude-opus-4-6", "", 200_001, 10, 37.5}, {"claude-sonnet-4-5", "batch", 200_001, 3, 11.25}, {"claude-opus-4-5", "", 200_001, 5, 25},
		{"gemini-2.5-pro", "", 200_001, 2.5, 15}, {"gemini-2.5-pro", "flex", 9, 0.625, 5}, {"gemini-1.5-flash", "", 128_001, 0.15, 0.6}, {"deepseek-chat", "batch", 9, -1, -1},
	} {
		p, ok := Default().Of(c.model, autumn)
		if !ok {
			t.Fatal(c.model)
		}
		p, ok = p.For(c.tier, c.prompt)
		if ok != (c.in >= 0) || ok && (math.Abs(p.Input-c.in) > 1e-9 || math.Abs(p.Output-c.out) > 1e-9) {
			t.Errorf("%s %q of %d tokens: %v %v %v, want %v %v", c.model, c.tier, c.prompt, p.Input, p.Output, ok, c.in, c.out)
		}
	}
	flat, _ := Default().Of("claude-opus-4-6", time.Date(2026, 3, 13, 0, 0, 0, 0, time.UTC))
	if p, _ := flat.For("", 900_000); p.Input != 5 {
		t.Errorf("long prompts of Opus 4.6 cost %v since 2026-03-13", p.Input)
	}
	p, _ := Default().Of("claude-sonnet-4-5", autumn)
	if p, _ = p.For("batch", 200_001); p.CacheRead != 0.3 || p.CacheWrite != 3.75 || p.CacheWrite1h != 6 {
		t.Errorf("the cache of a long prompt in a batch: %+v", p)
	}
	if q, _ := p.For("", 0); !p.Equal(q) {
		t.Error("a price is not equal to itself")
	}
}

func TestPricesAreDated(t *testing.T) {
	table, err := Parse(strings.NewReader("# mine\nmodel,from,input,output,cache_read,cache_write\ntern-2,2025-06-01,2,4,1,3\ntern-2,2025-01-01,10,20,5,15\ngull,,1,1,1,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	day := func(s string) time.Time {
		at, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for at, want := range map[string]float64{"2024-12-31": -1, "2025-01-01": 10, "2025-05-31": 10, "2025-06-01": 2, "2030-01-01": 2} {
		if p, ok := table.Of("tern-2", day(at)); ok != (want >= 0) || ok && p.Input != want {
			t.Errorf("%s: %+v %v, want %v", at, p, ok, want)
		}
	}
	if _, ok := table.Of("gull", time.Time{}); !ok {
		t.Error("a price without a day counts for ever")
	}
}

// TestClassesAreExclusive: tokens read from a cache cost only the cache price, and
// reasoning costs once, as output.
func TestClassesAreExclusive(t *testing.T) {
	p := Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	got := p.Cost(Tokens{Input: 1000, Output: 200, CacheRead: 50_000, CacheWrite: 4000, Reasoning: 300})
	if want := 0.003 + 0.0075 + 0.015 + 0.015; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestBadTables(t *testing.T) {
	const good = "model,from,input,output,cache_read,cache_write\n"
	for text, says := range map[string]string{
		"":              "head",
		"model,input\n": "head",
		"model,from,input,output,cache_read,cache_write,cache_write_1h\nm,,1,2,3,4,x\n":                         "line 2: cache_write_1h",
		"model,from,input,output,cache_read,cache_write,cache_write_9h\n":                                       "head",
		good + "m,2025-01-01,1,2,3\n":                                                                           "wrong number of fields",
		"model,from,input,output,cache_read,cache_write,cache_write_1h,tiers\nm,,1,2,3,4,,flex\n":               "line 2: tiers",
		"model,from,input,output,cache_read,cache_write,cache_write_1h,tiers\nm,,1,2,3,4,,flex=0\n":             "line 2: tiers",
		"model,from,input,output,cache_read,cache_write,cache_write_1h,tiers\nm,,1,2,3,4,,flex=1 flex=2\n":      "line 2: tiers",
		"model,from,input,output,cache_read,cache_write,cache_write_1h,tiers,long\nm,,1,2,3,4,,,200000\n":       "line 2: long",
		"model,from,input,output,cache_read,cache_write,cache_write_1h,tiers,long\nm,,1,2,3,4,,,200001 2 1.5\n": "line 2: long",
		"model,from,input,output,cache_read,cache_write,cache_write_1h,tiers,long\nm,,1,2,3,4,,,200000 2 no\n":  "line 2: long",
		good + ",2025-01-01,1,2,3,4\n":           "line 2: no model",
		good + "m,yesterday,1,2,3,4\n":           "line 2: from",
		good + "# x\nm,,1,2,3,-4\n":              "line 3: cache_write",
		good + "m,,NaN,2,3,4\n":                  "line 2: input",
		good + "m,,1,2,3,4\nm-20250101,,1,2,3,4": "line 3: m has two prices",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	if _, err := Load("/nowhere/prices.csv"); err == nil {
		t.Error("no error of a file that is not there")
	}
}
