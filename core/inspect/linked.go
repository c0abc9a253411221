package inspect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
)

// A run that a call of another session caused has a trace of its own if its stream could
// not be decoded again when the call arrived. The run has a link to the call, by which it
// is found here and put below the call.

// maxLinkDepth is how many such traces may stand one below the other.
const maxLinkDepth = 8

// maxLinkDistance is how far from its call such a run may begin.
const maxLinkDistance = time.Hour

const linkedSQL = `
	SELECT TraceId, SpanId, arrayFirst(s -> has({calls:Array(String)}, s), Links.SpanId)
	FROM otel_traces FINAL
	WHERE Timestamp >= fromUnixTimestamp64Nano({from:Int64}) AND Timestamp <= fromUnixTimestamp64Nano({to:Int64})
		AND ParentSpanId = '' AND hasAny(Links.SpanId, {calls:Array(String)})`

// addLinked reads the traces of runs that the trace's calls caused and that are not in it.
func (t *Trace) addLinked(ctx context.Context, q Querier, now time.Time) error {
	looked := make(map[string]bool)
	for range maxLinkDepth {
		var calls []string
		var from, to int64
		has := make(map[string]bool)
		for _, w := range t.works {
			if w.Kind == blame.Run {
				has[w.Parent] = true
			}
		}
		for _, w := range t.works {
			if w.child == "" || has[w.ID] || looked[w.ID] {
				continue
			}
			looked[w.ID] = true
			calls = append(calls, w.ID)
			if from == 0 || w.Start < from {
				from = w.Start
			}
			to = max(to, w.End)
		}
		if len(calls) == 0 {
			return nil
		}
		slices.Sort(calls)
		type found struct{ trace, span, call string }
		var list []found
		err := q.Each(ctx, linkedSQL, map[string]string{
			"calls": "['" + strings.Join(calls, "','") + "']",
			"from":  strconv.FormatInt(from-int64(maxLinkDistance), 10), "to": strconv.FormatInt(to+int64(maxLinkDistance), 10),
		}, func(v []any) error {
			r := reader{values: v}
			list = append(list, found{r.str(), r.str(), r.str()})
			return r.err
		})
		if err != nil {
			return fmt.Errorf("runs that are apart: %w", err)
		}
		for _, f := range list {
			if t.Works[f.span] != nil {
				continue
			}
			if err := t.read(ctx, q, f.trace, now); err != nil {
				return fmt.Errorf("spans of %s: %w", f.trace, err)
			}
			if w := t.Works[f.span]; w != nil {
				w.Parent = f.call
			}
		}
	}
	return nil
}
