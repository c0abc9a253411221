package inspect

import (
	"context"
	"fmt"
	"time"
)

// Account is the account of one stream, as the table source_ledger has it.
type Account struct {
	Source      string `json:"source"`
	Stream      string `json:"stream"`
	Origin      string `json:"origin"`
	Read        int64  `json:"read_bytes"`
	Decoded     int64  `json:"decoded_bytes"`
	Quarantined int64  `json:"quarantined_bytes"`
	Dropped     int64  `json:"dropped_bytes"`
	Messages    int64  `json:"messages"`
	Problems    int64  `json:"problems"`
}

// Unaccounted is the number of bytes read without an outcome: anything but 0 is a bug.
func (a *Account) Unaccounted() int64 { return a.Read - a.Decoded - a.Quarantined - a.Dropped }

// Accounts returns the account of every stream.
func Accounts(ctx context.Context, q Querier) ([]Account, error) {
	var out []Account
	err := q.Each(ctx, `
		SELECT toString(source), stream, origin, read_bytes, decoded_bytes, quarantined_bytes, dropped_bytes, messages, problems
		FROM source_ledger FINAL ORDER BY source, origin, stream`, nil,
		func(v []any) error {
			r := reader{values: v}
			out = append(out, Account{
				Source: r.str(), Stream: r.str(), Origin: r.str(), Read: r.signed(), Decoded: r.signed(), Quarantined: r.signed(), Dropped: r.signed(),
				Messages: r.signed(), Problems: r.signed(),
			})
			return r.err
		})
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return out, nil
}

// Fit is how much of a source its decoder understands.
type Fit struct {
	Source, Format    string
	Messages, Unknown uint64
}

// Fits returns how many messages of each source and format are of kind unknown. Rows of
// unknown fields do not count.
func Fits(ctx context.Context, q Querier) ([]Fit, error) {
	var out []Fit
	err := q.Each(ctx, `
		SELECT toString(source), toString(format), count(), countIf(kind = 'unknown') FROM messages FINAL
		WHERE NOT (kind = 'unknown' AND attributes['type'] = 'unknown_fields') GROUP BY source, format ORDER BY source, format`, nil,
		func(v []any) error {
			r := reader{values: v}
			out = append(out, Fit{Source: r.str(), Format: r.str(), Messages: r.num(), Unknown: r.num()})
			return r.err
		})
	if err != nil {
		return nil, fmt.Errorf("formats: %w", err)
	}
	return out, nil
}

// Stored counts the rows of one source. A message that is open, or was cut off, is none of the books.
type Stored struct {
	Messages, Open, DeadLetters, Resolved uint64
}

// Rows returns the stored rows by source, and the store's clock.
func Rows(ctx context.Context, q Querier) (map[string]Stored, time.Time, error) {
	out := make(map[string]Stored)
	var now time.Time
	err := q.Each(ctx, `
		SELECT toString(source), sum(m), sum(o), sum(l), sum(r), now64(9, 'UTC') FROM (
			SELECT source, countIf(complete) AS m, countIf(NOT complete) AS o, 0 AS l, 0 AS r FROM messages FINAL GROUP BY source
			UNION ALL SELECT source, 0, 0, countIf(stage != 'export'), countIf(resolved) FROM dead_letters FINAL GROUP BY source
			UNION ALL SELECT '', 0, 0, 0, 0)
		GROUP BY source`, nil,
		func(v []any) error {
			r := reader{values: v}
			name := r.str()
			out[name] = Stored{r.num(), r.num(), r.num(), r.num()}
			now = r.time()
			return r.err
		})
	if err != nil {
		return nil, now, fmt.Errorf("rows: %w", err)
	}
	return out, now, nil
}
