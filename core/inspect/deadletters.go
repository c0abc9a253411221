package inspect

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// DeadLetter is a dead letter: input, or a row, that could go no further.
type DeadLetter struct {
	ID       string    `json:"id"`
	Tenant   string    `json:"tenant"`
	Source   string    `json:"source"`
	Format   string    `json:"format"`
	Session  string    `json:"session_id,omitempty"`
	Stage    string    `json:"stage"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"error,omitempty"`
	Origin   string    `json:"origin"`
	Offset   int64     `json:"origin_offset"`
	Payload  string    `json:"payload,omitempty"`
	Bytes    uint64    `json:"payload_bytes"`
	Seen     time.Time `json:"seen_at"`
	Resolved bool      `json:"resolved,omitempty"`
	Ver      uint64    `json:"-"`
}

// DeadLetterFilter picks dead letters. The zero value picks the latest unresolved ones.
type DeadLetterFilter struct {
	ID       string // or its beginning
	Source   string
	Reason   string
	Resolved bool // those too
	Payload  bool // with their bytes
	Limit    int  // 50 when zero, all when negative
}

// DeadLetters returns dead letters, the latest first.
func DeadLetters(ctx context.Context, q Querier, f DeadLetterFilter) ([]DeadLetter, error) {
	limit, payload, resolved := strconv.Itoa(f.Limit), "0", "0"
	switch {
	case f.Limit == 0:
		limit = "50"
	case f.Limit < 0:
		limit = "1000000"
	}
	if f.Payload {
		payload = "1"
	}
	if f.Resolved {
		resolved = "1"
	}
	params := map[string]string{"id": f.ID, "source": f.Source, "reason": f.Reason, "resolved": resolved, "payload": payload, "limit": limit}
	var out []DeadLetter
	err := q.Each(ctx, `
		SELECT toString(dl_id), toString(tenant), toString(source), toString(format), session_id, toString(stage), toString(reason), error, origin, origin_offset,
			if({payload:UInt8} = 1, payload, ''), payload_bytes, seen_at, resolved, ver
		FROM dead_letters
		WHERE startsWith(toString(dl_id), {id:String}) AND ({source:String} = '' OR source = {source:String})
			AND ({reason:String} = '' OR reason = {reason:String}) AND ({resolved:UInt8} = 1 OR NOT resolved)
		ORDER BY seen_at DESC, origin, origin_offset LIMIT {limit:UInt32}`, params,
		func(v []any) error {
			r := reader{values: v}
			out = append(out, DeadLetter{
				ID: r.str(), Tenant: r.str(), Source: r.str(), Format: r.str(), Session: r.str(), Stage: r.str(), Reason: r.str(), Detail: r.str(),
				Origin: r.str(), Offset: r.signed(), Payload: r.str(), Bytes: r.num(), Seen: r.time(), Resolved: r.flag(), Ver: r.num(),
			})
			return r.err
		})
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return out, nil
}
