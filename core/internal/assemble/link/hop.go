package link

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// HopName is a name under which a hop and its cause are paired. It begins with the evidence.
type HopName string

const (
	byCallID    = "hop\x00call\x00"
	bySpan      = "hop\x00span\x00"
	byArguments = "hop\x00arguments\x00"
	byText      = "hop\x00text\x00"
	bySession   = "hop\x00session\x00"
)

const (
	maxCompared = 64 << 10 // bytes of arguments, or of a text
	minText     = 16       // of a text: short ones are alike by chance
	minSession  = 16       // of the id of a session: ids that are unique anywhere are long

	// maxHops is the number of calls, and of hops, that are alike and are remembered of a window.
	maxHops = 256

	// hopSlack is how far the clocks of a recorder and of the caller may be apart where the time
	// is the evidence.
	hopSlack = int64(time.Second)
	// hopWindow is the time that a pairing by time looks at: it bounds how much is compared.
	hopWindow = int64(10 * time.Minute)
	// hopMargin is how near the next one is.
	hopMargin = int64(time.Minute)
	// maxWindows is in how many of them a call is looked for.
	maxWindows = int64(36)

	// The confidence, in percent, of the only call of a time with these arguments, and of one of
	// several that are as many as the hops.
	aloneConfidence   = 90
	orderedConfidence = 60
)

// CallHop is the name by the agent's id of a call.
func CallHop(id string) HopName {
	if id == "" {
		return ""
	}
	return HopName(byCallID + id)
}

// SpanHop is the name by the span that a traceparent names: its trace and its id, in hex.
func SpanHop(trace, span string) HopName {
	if len(trace) != 32 || len(span) != 16 {
		return ""
	}
	return HopName(bySpan + trace + span)
}

// TraceparentHop is the name by a traceparent: version-trace-span-flags.
func TraceparentHop(traceparent string) HopName {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 {
		return ""
	}
	return SpanHop(parts[1], parts[2])
}

// ArgumentsHop is the name by the tool, as its server knows it, and the arguments.
// The server is not part of it: the caller knows it by its own configuration.
func ArgumentsHop(tool, server string, arguments msg.Text) HopName {
	if tool = toolOf(tool, server); tool == "" || arguments.Len() > maxCompared {
		return ""
	}
	text := arguments.Append(nil)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	} else if d.Decode(&v) == nil { // the order of members and the blanks are each program's own
		if sorted, err := json.Marshal(v); err == nil {
			text = sorted
		}
	}
	return HopName(byArguments + msg.HashKey(tool, string(text)))
}

// toolOf is the name of a tool without that of its server: mcp__SERVER__TOOL.
func toolOf(tool, server string) string {
	if server == "" {
		return tool
	}
	rest := strings.TrimLeft(strings.TrimPrefix(tool, "mcp"), "_")
	if rest, ok := strings.CutPrefix(rest, server); ok {
		return cmp.Or(strings.TrimLeft(rest, "_.-:/"), tool)
	}
	return tool
}

// TextHop is the name by a text that is sent.
func TextHop(text msg.Text) HopName {
	if text.Len() > maxCompared {
		return ""
	}
	s := strings.TrimSpace(text.String())
	if len(s) < minText {
		return ""
	}
	return HopName(byText + msg.HashKey(s))
}

// Served reports whether the run is a program's own record of its work in a turn.
func (u *Remote) Served() bool { return u.Hop && strings.HasPrefix(u.Name, bySession) }

// SessionHop is the name by the session, where both programs call it the same.
func SessionHop(session string) HopName {
	if len(session) < minSession {
		return ""
	}
	return HopName(bySession + session)
}

// Link is the evidence of the name.
func (n HopName) Link() msg.LinkMethod {
	switch {
	case strings.HasPrefix(string(n), bySpan):
		return msg.ByTrace
	case strings.HasPrefix(string(n), byArguments), strings.HasPrefix(string(n), byText):
		return msg.ByPrompt
	}
	return msg.ByNativeID
}

// At returns the name of the correlation in which a hop is paired that begins then.
func (n HopName) At(start int64) string {
	if n.timed() {
		return string(n) + "\x00" + strconv.FormatInt(start/hopWindow, 10)
	}
	return string(n)
}

// During returns the names of the correlations in which hops are paired that begin from start to
// end, or while the clocks may differ. A cause that still lasts, whose end is zero, is looked for
// in the next window when it has ended, or if that is near.
func (n HopName) During(start, end int64) (names []string) {
	if !n.timed() {
		return []string{string(n)}
	}
	from, to := start-hopSlack, max(start+hopMargin, end)+hopSlack
	for w := from / hopWindow; w <= min(to/hopWindow, from/hopWindow+maxWindows); w++ {
		names = append(names, n.At(w*hopWindow))
	}
	return names
}

// timed reports whether the time is part of the evidence.
func (n HopName) timed() bool {
	return !strings.HasPrefix(string(n), byCallID) && !strings.HasPrefix(string(n), bySpan)
}

// same reports whether two sites are one call, or one turn, which several views of a conversation
// may have.
func (c *CallSite) same(o *CallSite) bool {
	return c.Session == o.Session && cmp.Or(c.Family, c.Format) == cmp.Or(o.Family, o.Format) && c.Call == o.Call && (c.Call != "" || c.Run == o.Run)
}

// AddCause adds a call, or a turn, that may have caused a hop, as its strongest view has it.
// Beyond the limit the oldest is forgotten, with the hops before the next, which are returned: they stay where they are.
func (t *Correlation) AddCause(c CallSite) (forgotten []Candidate) {
	at := slices.IndexFunc(t.Calls, func(old CallSite) bool { return old.same(&c) })
	switch {
	case at < 0:
		t.Calls = append(t.Calls, c)
	case t.Calls[at].Rank > c.Rank:
		return nil
	default:
		t.Calls[at] = c
	}
	slices.SortFunc(t.Calls, func(x, y CallSite) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Session, y.Session), cmp.Compare(x.Run, y.Run), cmp.Compare(x.Call, y.Call))
	})
	if len(t.Calls) <= maxHops {
		return nil
	}
	t.forgetCalls(func(c *CallSite) bool { return c.same(&t.Calls[0]) })
	return t.forgetHops(t.Calls[0].Start - hopSlack)
}

// AddHop adds a run that is a hop. Beyond the limit the oldest is forgotten, and returned, with the calls
// that ended before the next.
func (t *Correlation) AddHop(r Candidate) (forgotten []Candidate) {
	if t.insert(r); len(t.Runs) <= maxHops {
		return nil
	}
	forgotten = t.forgetHops(t.Runs[1].Start)
	if len(forgotten) == 0 { // they began together
		forgotten = t.forgetHops(t.Runs[0].Start + 1)
	}
	t.forgetCalls(func(c *CallSite) bool { return c.End != 0 && len(t.Runs) > 0 && c.End+hopSlack < t.Runs[0].Start })
	return forgotten
}

func (t *Correlation) forgetCalls(old func(*CallSite) bool) {
	kept := t.Calls[:0:0]
	for i := range t.Calls {
		if c := &t.Calls[i]; old(c) {
			t.Lost = max(t.Lost, c.Start, c.End)
		} else {
			kept = append(kept, *c)
		}
	}
	t.Calls = kept
}

// forgetHops forgets those that began before a time.
func (t *Correlation) forgetHops(before int64) (forgotten []Candidate) {
	t.Runs = slices.DeleteFunc(t.Runs, func(r Candidate) bool {
		if r.Start >= before {
			return false
		}
		t.Lost, forgotten = max(t.Lost, r.Start), append(forgotten, r)
		return true
	})
	return forgotten
}

// Crowded reports whether too many were alike at the time of a hop, so that its call may have been
// forgotten, or that of another hop.
func (t *Correlation) Crowded(r *Candidate) bool {
	return t.Link == msg.ByPrompt && t.Lost != 0 && r.Start-hopSlack <= t.Lost
}

// EndHop records when the answer of a hop came.
func (t *Correlation) EndHop(format, session, run string, end int64) (changed bool) {
	for i := range t.Runs {
		r := &t.Runs[i]
		if r.Request != "" && r.Run == run && r.Session == session && r.Format == format && r.End != end {
			r.End = end
			return true
		}
	}
	return false
}

// Inner returns how long the request of the hop took in the other recording of it, within the
// time of this one: the difference is transport. Zero if there is none, or more than one.
func (t *Correlation) Inner(i int, pairs []Pair) (inner int64) {
	r := &t.Runs[i]
	if pairs[i].Call < 0 || r.Request == "" || r.End == 0 {
		return 0
	}
	for j := range t.Runs {
		o := &t.Runs[j]
		if pairs[j].Call != pairs[i].Call || o.Request != r.Request || o.End == 0 || o.Session == r.Session && o.Format == r.Format {
			continue
		}
		if o.Start < r.Start-hopSlack || o.End > r.End+hopSlack || o.End-o.Start >= r.End-r.Start {
			continue
		}
		if inner != 0 {
			return 0
		}
		inner = o.End - o.Start
	}
	return inner
}

// holds reports whether the run began while the call, or the turn, was going on.
func (c *CallSite) holds(r *Candidate) bool {
	end := c.End
	if end == 0 {
		end = c.Start + longestCall
	}
	return c.Start-hopSlack <= r.Start && r.Start <= end+hopSlack
}

// pairHops returns the cause of each hop. Where the arguments or the text are the evidence, the
// time decides; where it leaves a choice, there is none.
func (t *Correlation) pairHops() []Pair {
	pairs := make([]Pair, len(t.Runs))
	for i := range pairs {
		pairs[i].Call = -1
	}
	if t.Link == msg.ByPrompt {
		t.pairAlike(pairs)
		return pairs
	}
	for i := range t.Runs {
		for k := range t.Calls {
			c := &t.Calls[k]
			if c.holds(&t.Runs[i]) && (pairs[i].Call < 0 || c.Start <= t.Runs[i].Start) {
				pairs[i].Call = k // the last, unless the clocks must differ for it
			}
		}
		// The id of a call, or of a span, needs no time.
		if pairs[i].Call < 0 && len(t.Calls) > 0 && (t.Link == msg.ByTrace || t.Calls[0].Call != "") {
			pairs[i].Call = 0
		}
	}
	return pairs
}

// pairAlike pairs hops with calls that are alike. Those whose times overlap, directly or by
// others, belong together: if they are as many calls as hops, they are paired in order, unless some
// of that time were forgotten. Both are sorted by their start, so that they are found in their order.
func (t *Correlation) pairAlike(pairs []Pair) {
	taken := make([]bool, len(t.Calls))
	done := make([]bool, len(t.Runs))
	for i := range t.Runs {
		if done[i] {
			continue
		}
		done[i] = true
		runs, calls := []int{i}, []int(nil)
		for next := 0; next < len(runs); next++ {
			for k := range t.Calls {
				if taken[k] || !t.Calls[k].holds(&t.Runs[runs[next]]) {
					continue
				}
				taken[k], calls = true, append(calls, k)
				for j := range t.Runs {
					if !done[j] && t.Calls[k].holds(&t.Runs[j]) {
						done[j], runs = true, append(runs, j)
					}
				}
			}
		}
		if len(runs) != len(calls) || t.Crowded(&t.Runs[runs[0]]) {
			continue
		}
		confidence := uint8(aloneConfidence)
		if len(runs) > 1 {
			confidence = orderedConfidence
		}
		for n, k := range calls {
			if t.Calls[k].holds(&t.Runs[runs[n]]) {
				pairs[runs[n]] = Pair{Call: k, Confidence: confidence}
			}
		}
	}
}
