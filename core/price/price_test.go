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
	if len(table.models) < 10 {
		t.Errorf("%d models", len(table.models))
	}
	for model, rows := range table.models {
		for _, p := range rows {
			if p.from.IsZero() || p.Input <= 0 || p.Output < p.Input || p.CacheRead > p.Input || p.CacheWrite < p.Input {
				t.Errorf("%s: %+v", model, p)
			}
		}
	}
}

func TestModelsByTheirNames(t *testing.T) {
	table := Default()
	for model, input := range map[string]float64{
		"claude-sonnet-4-5":                             3,
		"claude-sonnet-4-5-20250929":                    3,
		"anthropic/claude-sonnet-4-5-20250929":          3,
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0":  3,
		"claude-opus-4-5@20251101":                      5,
		"claude-opus-4-1-20250805":                      15,
		"GPT-4o-2024-08-06":                             2.5,
		"gpt-4o-mini":                                   0.15,
		"openrouter/openai/gpt-5-mini":                  0.25,
		"claude-3-5-haiku-latest":                       0.8,
		"gpt-5-pro":                                     -1, // another model, fifteen times as dear
		"claude-sonnet-4-5-thinking-of-somebody-else's": -1,
		"": -1,
	} {
		p, ok := table.Of(model, autumn)
		if ok != (input >= 0) || ok && p.Input != input {
			t.Errorf("%s: %+v %v, want %v", model, p, ok, input)
		}
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
		"":                                       "head",
		"model,input\n":                          "head",
		good + "m,2025-01-01,1,2,3\n":            "wrong number of fields",
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
