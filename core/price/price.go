// Package price computes the cost of tokens. Prices are dated data, which a user may
// replace: a table in CSV, one row per model and day from which it counts.
//
// A model that is not in the table has no price, and neither has a model before its
// first day: an unknown price is never counted as nothing, and never replaced by the
// price of a model with a similar name. Only the date and the reseller's prefix of a
// model name are removed before the lookup.
package price

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed prices.csv
var bundled string

// Tokens are counts of exclusive classes: a token is in one of them. CacheWrite1h is no class: it is how
// many tokens of CacheWrite are kept for an hour.
type Tokens struct{ Input, Output, CacheRead, CacheWrite, Reasoning, CacheWrite1h uint64 }

// Price is US dollars for a million tokens of each class. CacheWrite1h is for tokens that a cache keeps for
// an hour, CacheWrite for those that it keeps for the shortest time that is sold.
type Price struct {
	Input, Output, CacheRead, CacheWrite, CacheWrite1h float64
	// Tiers are the factors of the prices by tier of the service: batch, flex, priority, fast, us, ... A tier that is
	// not among them has no price.
	Tiers map[string]float64
	Long  Long
}

// Long is by how much dearer the whole of a request is whose prompt has more tokens than Over, one of Steps; 0: none is.
// Input is for all classes of the prompt.
type Long struct {
	Over          uint32
	Input, Output float64
}

// Steps are the sizes of prompts above which a price may differ, in tokens. The tables of ClickHouse count tokens apart by
// them (exporters/clickhouse/rollup.go).
var Steps = []uint32{128_000, 200_000, 256_000, 272_000}

// For returns the price at a tier of the service, several of which are joined by + (batch+us), in a request whose prompt has
// so many tokens; 0: they are of several requests. The standard tier is empty.
func (p Price) For(tier string, prompt uint64) (Price, bool) {
	input, output := 1.0, 1.0
	if p.Long.Over > 0 && prompt > uint64(p.Long.Over) {
		input, output = p.Long.Input, p.Long.Output
	}
	if tier != "" {
		for name := range strings.SplitSeq(tier, "+") {
			factor, ok := p.Tiers[name]
			if !ok {
				return Price{}, false
			}
			input, output = input*factor, output*factor
		}
	}
	p.Input, p.CacheRead, p.CacheWrite, p.CacheWrite1h = p.Input*input, p.CacheRead*input, p.CacheWrite*input, p.CacheWrite1h*input
	p.Output *= output
	return p, true
}

// Equal reports whether the prices are the same.
func (p Price) Equal(o Price) bool {
	return p.Input == o.Input && p.Output == o.Output && p.CacheRead == o.CacheRead && p.CacheWrite == o.CacheWrite && p.CacheWrite1h == o.CacheWrite1h &&
		p.Long == o.Long && maps.Equal(p.Tiers, o.Tiers)
}

// Cost returns the cost of the tokens in US dollars.
func (p Price) Cost(t Tokens) float64 {
	hour := min(t.CacheWrite1h, t.CacheWrite)
	return (float64(t.Input)*p.Input + float64(t.Output+t.Reasoning)*p.Output + float64(t.CacheRead)*p.CacheRead +
		float64(t.CacheWrite-hour)*p.CacheWrite + float64(hour)*p.CacheWrite1h) / 1e6
}

// Usage is the tokens of a response with all that their cost depends on.
type Usage struct {
	Tokens Tokens
	Time   time.Time
	Tier   string
	Prompt uint64 // tokens of the request's prompt; 0: they are of several requests
	Stated uint64 // US dollars that the record states as the cost, times 10^12; 0: it states none
}

// Cost returns the cost of a usage in US dollars, if it is known: the one that its record states, else that at the list price.
func (p Prices) Cost(u Usage) (usd float64, ok bool) {
	if u.Stated > 0 {
		return float64(u.Stated) / 1e12, true
	}
	list, ok := p.At(u.Time)
	if ok {
		list, ok = list.For(u.Tier, u.Prompt)
	}
	if !ok {
		return 0, false
	}
	return list.Cost(u.Tokens), true
}

// Table is prices by model. It is immutable.
type Table struct{ models map[string][]dated }

type dated struct {
	from time.Time
	Price
}

// Row is a price of a model, named without provider and date, from a time on; the zero time
// is for ever.
type Row struct {
	Model string
	From  time.Time
	Price
}

// Rows are all prices, by model and time.
func (t *Table) Rows() []Row {
	var out []Row
	for _, model := range slices.Sorted(maps.Keys(t.models)) {
		for _, d := range t.models[model] {
			out = append(out, Row{model, d.from, d.Price})
		}
	}
	return out
}

// Default is the embedded table.
func Default() *Table {
	t, err := Parse(strings.NewReader(bundled))
	if err != nil { // a test reads it
		return &Table{}
	}
	return t
}

// Load reads a table from a file; the default one when path is empty.
func Load(path string) (*Table, error) {
	if path == "" {
		return Default(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	defer f.Close()
	t, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("prices: %s: %w", path, err)
	}
	return t, nil
}

// head are the columns of a table. Those from required on may be left out.
var head = []string{"model", "from", "input", "output", "cache_read", "cache_write", "cache_write_1h", "tiers", "long"}

const required = 6

// Parse reads a table: CSV with the head model,from,input,output,cache_read,
// cache_write and, where it matters, cache_write_1h,tiers,long. Lines that begin with # are comments,
// from is a day (2025-09-29) and may be empty for ever, prices are US dollars for a million
// tokens. A cache_write_1h that is empty or not there is as high as cache_write. tiers are the factors of tiers of the
// service (batch=0.5 priority=2), long the size of a prompt above which a request is dearer, and the factors of its prompt
// and of its answer (200000 2 1.5).
func Parse(r io.Reader) (*Table, error) {
	in := csv.NewReader(r)
	in.Comment, in.TrimLeadingSpace = '#', true // each row has as many fields as the head
	first, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if len(first) < required || len(first) > len(head) || !slices.Equal(first, head[:len(first)]) {
		return nil, fmt.Errorf("head is %s, want %s", strings.Join(first, ","), strings.Join(head, ","))
	}
	t := &Table{models: make(map[string][]dated)}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := t.add(row); err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	for _, rows := range t.models {
		slices.SortFunc(rows, func(a, b dated) int { return cmp.Compare(a.from.Unix(), b.from.Unix()) })
	}
	return t, nil
}

func (t *Table) add(row []string) (err error) {
	model := name(row[0])
	if model == "" {
		return errors.New("no model")
	}
	var d dated
	if row[1] != "" {
		from, err := time.Parse(time.DateOnly, row[1])
		if err != nil {
			return fmt.Errorf("from: %w", err)
		}
		d.from = from
	}
	for i, to := range []*float64{&d.Input, &d.Output, &d.CacheRead, &d.CacheWrite} {
		if *to, err = dollars(row, 2+i); err != nil {
			return err
		}
	}
	if d.CacheWrite1h = d.CacheWrite; len(row) > required && row[required] != "" {
		if d.CacheWrite1h, err = dollars(row, required); err != nil {
			return err
		}
	}
	if len(row) > required+1 {
		if d.Tiers, err = tiers(row[required+1]); err != nil {
			return err
		}
	}
	if len(row) > required+2 {
		if d.Long, err = long(row[required+2]); err != nil {
			return err
		}
	}
	for _, other := range t.models[model] {
		if other.from.Equal(d.from) {
			return fmt.Errorf("%s has two prices from %q on", model, row[1])
		}
	}
	t.models[model] = append(t.models[model], d)
	return nil
}

func dollars(row []string, i int) (float64, error) {
	v, err := strconv.ParseFloat(row[i], 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, fmt.Errorf("%s %q: want dollars for a million tokens", head[i], row[i])
	}
	return v, nil
}

func tiers(text string) (map[string]float64, error) {
	var out map[string]float64
	for field := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(field, "=")
		factor, ok := positive(value)
		if _, twice := out[name]; !ok || twice || name == "" || strings.Contains(name, "+") {
			return nil, fmt.Errorf("tiers %q: want the factor of each tier, as batch=0.5 priority=2", text)
		}
		if out == nil {
			out = make(map[string]float64)
		}
		out[name] = factor
	}
	return out, nil
}

func long(text string) (l Long, err error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return Long{}, nil
	}
	if len(fields) == 3 {
		var in, out bool
		over, err := strconv.ParseUint(fields[0], 10, 32)
		l.Over = uint32(over)
		l.Input, in = positive(fields[1])
		l.Output, out = positive(fields[2])
		if err == nil && in && out && slices.Contains(Steps, l.Over) {
			return l, nil
		}
	}
	return Long{}, fmt.Errorf("long %q: want one of %v tokens, and the factors of the prompt and of the answer, as 200000 2 1.5", text, Steps)
}

func positive(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v > 0 && !math.IsInf(v, 0)
}

// rules make the name under which a model is looked up, in turn. The views of ClickHouse that
// compute costs have the same (exporters/clickhouse/migrations/0093_views.sql).
var rules = []struct {
	match *regexp.Regexp
	with  string
}{
	{regexp.MustCompile(`^.*/`), ""},                                                                  // openrouter/anthropic/, models/, publishers/google/models/
	{regexp.MustCompile(`^.*?anthropic\.(.*?)(-v[0-9]+)?(:[0-9]+)?$`), "$1"},                          // us.anthropic.claude-sonnet-4-5-20250929-v1:0 of Bedrock
	{regexp.MustCompile(`\[1m\]$`), ""},                                                               // the long context, in Claude Code
	{regexp.MustCompile(`(@default|[-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)|-00[0-9])$`), ""}, // the release
	{regexp.MustCompile(`-preview-[0-9]{2}-([0-9]{2}|[0-9]{4})$`), "-preview"},                        // gemini-2.5-pro-preview-05-06
	{regexp.MustCompile(`^(claude-[a-z0-9-]*[0-9])\.([0-9])`), "$1-$2"},                               // claude-sonnet-4.5 of Copilot and OpenRouter
}

// name is the model without where it is sold, its release's date and its
// deployment's version: us.anthropic.claude-sonnet-4-5-20250929-v1:0 is
// claude-sonnet-4-5.
func name(model string) string {
	model = strings.ToLower(strings.TrimSpace(model))
	for _, r := range rules {
		model = r.match.ReplaceAllString(model, r.with)
	}
	return model
}

// Of returns the price of a model at a time, if it has one.
func (t *Table) Of(model string, at time.Time) (p Price, ok bool) { return t.Model(model).At(at) }

// Prices are those of a model.
type Prices []dated

// Model returns the prices of a model, for who asks for many times: to find a model by its name takes longer than to find a time.
func (t *Table) Model(model string) Prices { return t.models[name(model)] }

// At returns the price at a time, if there is one.
func (p Prices) At(at time.Time) (price Price, ok bool) {
	for _, d := range p {
		if !d.from.After(at) {
			price, ok = d.Price, true
		}
	}
	return price, ok
}
