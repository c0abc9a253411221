package assemble

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// View is a format among those that show the same conversations: an agent's transcript, its
// telemetry, its traffic with the provider.
type View struct {
	// Family names the formats of one agent. Ids of its rows are hashed of it in place of the
	// format, so that a fact that two views name alike is one row. Empty: the format is the
	// only view of its conversations.
	Family string
	// Rank orders the views of a family, from 0 to 3: of two views of a fact the higher one
	// has the row.
	Rank uint8
	// Measures is set if a response's times are those of its request.
	Measures bool
	// OwnNames is set if the views of the family have names of their own for runs or responses.
	// Then the strongest view of a conversation leads; see leading.go.
	OwnNames bool
}

// rankShift is where a version has the rank of its view, above everything else: so of
// two views of a row that are stored in one hour the stronger one is valid, whichever was
// stored first. The revision of a decoder with a family is at most 15.
const rankShift = 60

// version raises a version by the rank of its view.
func (v View) version(ver uint64) uint64 {
	if v.Family == "" {
		return ver
	}
	return ver&(1<<rankShift-1) | uint64(v.Rank)<<rankShift
}

// fact is a run, a response or a call that views of one conversation have in common, under
// the id of its span. The emitted span follows from the latest version of each view and not
// from their order.
type fact struct {
	// Same is the key of the fact that this one turned out to be: a view that knows both
	// names of a response stated it.
	Same string `json:"same,omitempty"`

	Spans []sighting       `json:"spans,omitempty"` // the strongest view first
	Rows  map[string][]row `json:"rows,omitempty"`  // of messages, by their part in the fact

	// Seen has which views have which part of the fact.
	Seen sights `json:"seen,omitempty"`

	Emitted *emitted `json:"emitted,omitempty"`
	// Disputed is set when the counts of the views have differed.
	Disputed bool `json:"disputed,omitempty"`

	// Named is the rank of the strongest view that has this name for the fact, plus one.
	Named uint8 `json:"named,omitempty"`
	// Ranked is the rank of the strongest view that has the fact, plus one.
	Ranked uint8 `json:"ranked,omitempty"`
	// Listed is set if the record of the conversation has the fact in Below.
	Listed bool `json:"listed,omitempty"`
	// Response is the key of the response that made a call.
	Response string `json:"response,omitempty"`
	// Counted is the row with the tokens of a response as it was emitted; nil: none was. Beyond are
	// those of its tokens that are beyond the counts of each view.
	Counted *row               `json:"counted,omitempty"`
	Beyond  map[string]classes `json:"beyond,omitempty"`
	conversation

	key       string
	id        msg.SpanID
	dirty     bool
	committed int
}

// sighting is the span of a fact as one view has it.
type sighting struct {
	View View     `json:"view"`
	Span msg.Span `json:"span"`
}

// addRow adds a message, or the next version of it, to those of a part of the fact. It
// returns false for another message of the same view: a run may have several prompts.
func (f *fact) addRow(part string, r row) bool {
	rows := f.Rows[part]
	at := slices.IndexFunc(rows, func(o row) bool { return o.Format == r.Format })
	switch {
	case at >= 0 && rows[at].ID != r.ID:
		return false
	case at >= 0:
		rows[at] = r
	default:
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Format, b.Format))
	})
	if f.Rows == nil {
		f.Rows = make(map[string][]row)
	}
	f.Rows[part] = rows
	return true
}

// emitted is the span that was emitted last.
type emitted struct {
	Start int64  `json:"start"`
	Ver   uint64 `json:"ver"`
	// Raised is set if Ver is not that of the view, whose later versions have to be above it.
	Raised bool `json:"raised,omitempty"`
	// Gone is set if the span was taken back since.
	Gone  bool          `json:"gone,omitempty"`
	State msg.SpanState `json:"state,omitempty"`
}

// row is a message of a fact that was emitted.
type row struct {
	Format string `json:"format"`
	Rank   uint8  `json:"rank"`
	ID     msg.ID `json:"id"`
	Time   int64  `json:"time"`
	Ver    uint64 `json:"ver"`
	// Usage is the message that has tokens: it is emitted again with those of another view.
	Usage *msg.Message `json:"usage,omitempty"`
}

// bestTokens returns the counts of the first of the rows, which are those of the strongest view,
// or of one below it whose counts are final where its own are a lower bound. A tier or a cost that one view alone has is theirs.
func bestTokens(rows []row) msg.Tokens {
	best := rows[0].Usage.Usage
	for _, r := range rows[1:] {
		if t := r.Usage.Usage; whole(t) && !whole(best) {
			best = t
		}
	}
	for _, r := range rows {
		best = best.Terms(r.Usage.Usage)
	}
	return best
}

// whole reports whether counts are those of the whole response.
func whole(t msg.Tokens) bool { return t.Provenance >= msg.TranscriptFinal }

// put adds a view's span, or the next version of it.
func (f *fact) put(v View, s msg.Span) {
	f.remove(s.Format)
	f.Spans = append(f.Spans, sighting{v, s})
	f.sort()
}

// conversationKey returns the tenant and the session of a fact.
func (f *fact) conversationKey() (tenant, session string) {
	parts := strings.SplitN(f.prefix(), "\x00", 5) // see factKey
	return parts[0], strings.TrimSuffix(parts[4], "\x00")
}

func (f *fact) sort() {
	slices.SortFunc(f.Spans, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(b.View.Rank, a.View.Rank), cmp.Compare(a.Span.Format, b.Span.Format))
	})
}

// remove drops a view's span. It reports whether there was one.
func (f *fact) remove(format string) bool {
	n := len(f.Spans)
	f.Spans = slices.DeleteFunc(f.Spans, func(s sighting) bool { return s.Span.Format == format })
	return len(f.Spans) < n
}

// of returns the span of a view; nil when it has none.
func (f *fact) of(format string) *msg.Span {
	for i := range f.Spans {
		if s := &f.Spans[i].Span; s.Format == format {
			return s
		}
	}
	return nil
}

// merged is the span of all views: that of the strongest one, with the fields that it lacks,
// the end that another view has, and the numbers of the view that knows each best.
func (f *fact) merged() msg.Span {
	s := f.Spans[0].Span
	s.ID, s.Seen = f.id, msg.Seen{Messages: f.Seen.messages(max(f.Ranked, 1) - 1)}
	for i := range f.Spans {
		o := &f.Spans[i].Span
		s.Seen.By = append(s.Seen.By, o.Format)
		if i > 0 {
			complete(&s, o)
		}
	}
	if len(f.Spans) == 1 {
		return s
	}
	if c := f.tokens(); c != nil {
		s.Usage, s.Seen.Tokens = c.Usage, c.Format
	}
	if s.Kind == msg.SpanChat {
		for i := range f.Spans {
			s.Usage = s.Usage.Terms(f.Spans[i].Span.Usage)
		}
		f.measured(&s)
		s.Seen.Conflict = f.disagreement()
	}
	s.Ver = s.Ver&^(3<<completeShift) | uint64(s.State)<<completeShift
	return s
}

// tokens returns the view whose counts are valid: final ones, then the strongest view's.
func (f *fact) tokens() (best *msg.Span) {
	for i := range f.Spans {
		s := &f.Spans[i].Span
		if !s.Usage.IsZero() && (best == nil || s.Kind == msg.SpanChat && whole(s.Usage) && !whole(best.Usage)) {
			best = s
		}
	}
	return best
}

// measured takes the times of a response from the view that has those of its request.
func (f *fact) measured(s *msg.Span) {
	for i := range f.Spans {
		if v := &f.Spans[i]; v.View.Measures && v.Span.State == msg.SpanClosed && s.State == msg.SpanClosed {
			s.Start, s.End, s.Seen.Times = v.Span.Start, v.Span.End, v.Span.Format
			if v.Span.FirstToken != 0 {
				s.FirstToken, s.Seen.FirstToken = v.Span.FirstToken, other(f, v.Span.Format)
			}
			return
		}
	}
}

// other is a format that is not the strongest one of a fact; empty: it is that one.
func other(f *fact, format string) string {
	if format == f.Spans[0].Span.Format {
		return ""
	}
	return format
}

// disagreement returns the counts of the views of a response if they differ: those that are
// final, and without the reasoning, which not every view has apart.
func (f *fact) disagreement() string {
	var list []string
	differ, first := false, msg.Tokens{}
	for i := range f.Spans {
		s := &f.Spans[i].Span
		if s.Kind != msg.SpanChat || s.Usage.IsZero() || !whole(s.Usage) {
			continue
		}
		t := s.Usage
		t.Output, t.Reasoning, t.Provenance, t.Tier, t.Stated = t.Output+t.Reasoning, 0, 0, "", 0
		if len(list) == 0 {
			first = t
		}
		differ = differ || t != first
		list = append(list, fmt.Sprintf("%s %d/%d/%d/%d", s.Format, t.Input, t.Output, t.CacheRead, t.CacheWrite))
	}
	if !differ {
		return ""
	}
	return strings.Join(list, ", ")
}

// complete fills the fields that s lacks from a weaker view o of the same fact.
func complete(s, o *msg.Span) {
	if o.State > s.State && o.End >= s.LastSeen-link.Slack {
		s.State, s.End = o.State, max(o.End, s.Start)
		s.Outcome, s.ErrorType, s.StatusMessage = o.Outcome, o.ErrorType, o.StatusMessage
		s.Ended, s.Seen.Outcome = cmp.Or(o.Ended, s.Ended), o.Format
	}
	if s.Outcome == msg.OutcomeUnset && o.Outcome != msg.OutcomeUnset {
		s.Outcome, s.Seen.Outcome = o.Outcome, o.Format
	}
	if s.Outcome == msg.OutcomeOK && o.Outcome == msg.OutcomeError && o.State == msg.SpanClosed && (s.Kind == msg.SpanTool || s.Kind == msg.SpanDelegation) {
		s.Outcome, s.ErrorType, s.StatusMessage, s.Seen.Outcome = o.Outcome, o.ErrorType, o.StatusMessage, o.Format // a result without a mark of failure is ok
	}
	for _, f := range [...]struct {
		to   *string
		from string
	}{
		{&s.Agent.ID, o.Agent.ID}, {&s.Agent.Name, o.Agent.Name}, {&s.Model, o.Model}, {&s.AskedModel, o.AskedModel}, {&s.Provider, o.Provider},
		{&s.ResponseID, o.ResponseID}, {&s.Ended, o.Ended}, {&s.Server, o.Server}, {&s.Tool.Name, o.Tool.Name}, {&s.Tool.Server, o.Tool.Server},
		{&s.ArgumentShape, o.ArgumentShape}, {&s.Delegate.To, o.Delegate.To}, {&s.Delegate.ToID, o.Delegate.ToID}, {&s.Delegate.ChildRun, o.Delegate.ChildRun},
	} {
		*f.to = cmp.Or(*f.to, f.from)
	}
	if s.Outcome == msg.OutcomeError {
		s.ErrorType, s.StatusMessage = cmp.Or(s.ErrorType, o.ErrorType), cmp.Or(s.StatusMessage, o.StatusMessage)
	}
	s.Client = s.Client.Or(o.Client)
	s.Agent.Kind = cmp.Or(s.Agent.Kind, o.Agent.Kind)
	if s.FirstToken == 0 && o.FirstToken != 0 {
		s.FirstToken, s.Seen.FirstToken = o.FirstToken, o.Format
	}
	s.ArgumentBytes, s.ResultBytes = cmp.Or(s.ArgumentBytes, o.ArgumentBytes), cmp.Or(s.ResultBytes, o.ResultBytes)
	if s.ResultTokensFrom == msg.NoProvenance {
		s.ResultTokens, s.ResultTokensFrom = o.ResultTokens, o.ResultTokensFrom
		if o.ResultTokensFrom != msg.NoProvenance {
			s.Usage.Tier = o.Usage.Tier
		}
	}
	if o.Kind == msg.SpanDelegation && s.Kind == msg.SpanTool {
		s.Kind = msg.SpanDelegation
	}
	if len(s.FinishReasons) == 0 {
		s.FinishReasons = o.FinishReasons
	}
	if len(s.Request) == 0 {
		s.Request = o.Request
	}
	if len(s.Events) == 0 {
		s.Events = o.Events
	}
	if s.Pace == (msg.Pace{}) {
		s.Pace = o.Pace
	}
	s.Alive = max(s.Alive, o.Alive)
}
