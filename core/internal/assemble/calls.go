package assemble

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// call is a tool call or a delegation without a result.
type call struct {
	ID         string `json:"id"`
	Run        string `json:"run"` // the caller
	Delegation bool   `json:"delegation,omitempty"`
	Tool       string `json:"tool"`
	Server     string `json:"server,omitempty"`
	Model      string `json:"model,omitempty"` // that made it
	Internal   bool   `json:"internal,omitempty"`
	To         string `json:"to,omitempty"`
	ToID       string `json:"to_id,omitempty"`
	link.Edge
	Async             bool            `json:"async,omitempty"`
	Named             bool            `json:"named,omitempty"` // the protocol names Child
	CorrelationID     string          `json:"meet_id,omitempty"`
	CorrelationPrompt string          `json:"meet_prompt,omitempty"`
	Hops              []link.HopName  `json:"hops,omitempty"` // the names by which hops are looked for that it causes
	Start             int64           `json:"start"`
	Inferred          bool            `json:"inferred,omitempty"` // Start is not the protocol's
	Last              int64           `json:"last"`
	Alive             int64           `json:"alive,omitempty"` // as a run's
	Arguments         uint32          `json:"arguments,omitempty"`
	Hash              uint64          `json:"hash,omitempty"`       // of the arguments
	Signature         string          `json:"shape,omitempty"`      // of the arguments
	Failures          int64           `json:"failures,omitempty"`   // consecutive ones of its tool before it
	Lost              bool            `json:"lost,omitempty"`       // no result is expected, by rule
	Again             bool            `json:"again,omitempty"`      // it had its result before: nothing waits for another
	Unrecorded        bool            `json:"unrecorded,omitempty"` // its record never has the result
	ProtocolID        string          `json:"protocol_id,omitempty"`
	Worked            int64           `json:"worked,omitempty"` // when the run that it caused ended
	Moves             int             `json:"moved,omitempty"`  // how often that became another run
	Events            []msg.SpanEvent `json:"events,omitempty"`
	Judged            callJudged      `json:"judged,omitzero"`
	emission

	span msg.SpanID // see ids
}

// pending reports whether a result of the call is still expected.
func (c *call) pending() bool { return !c.Lost && !c.Emitted && !c.Again }

// correlates reports whether the call may cause a run of another session.
func (c *call) correlates() bool { return c.CorrelationID != "" || c.CorrelationPrompt != "" }

// observe records a part of the call at t.
func (c *call) observe(t, alive int64) {
	c.Last, c.Alive = max(c.Last, t), max(c.Alive, alive)
	c.touchOpen()
}

// identify records the protocol's id of the call.
func (c *call) identify(id string) {
	if id != "" && (c.ProtocolID == "" || c.ProtocolID == msg.UnknownID) {
		c.ProtocolID = strings.Clone(id)
	}
}

// delegateTo records to whom the call hands work. A later message may have the name where
// the first one had the caller's word for it.
func (c *call) delegateTo(d *msg.Delegate) {
	if d.ToID != "" && d.To != c.To {
		c.To = strings.Clone(d.To)
		c.touchOpen()
	}
	fill(field{&c.To, d.To}, field{&c.ToID, d.ToID})
}

// pair sets the run of another session that the call caused. The end of an earlier one no
// longer counts, and the span gets a higher version.
func (c *call) pair(e link.Edge) {
	if c.Child != "" && c.Child != e.Child {
		c.Worked = 0
		c.Moves++
	}
	c.Edge = e
}

// callResult is the result of a call.
type callResult struct {
	Call    string      `json:"call"`
	Time    int64       `json:"time"`
	Took    int64       `json:"took,omitempty"` // measured; ns
	Bytes   uint32      `json:"bytes,omitempty"`
	Hash    uint64      `json:"hash,omitempty"` // of the content
	Outcome msg.Outcome `json:"outcome"`
	Error   string      `json:"error,omitempty"`
	Message string      `json:"message,omitempty"`
}

func resultOf(m *msg.Message) callResult {
	e := callResult{Call: strings.Clone(m.Tool.CallID), Time: m.Time, Took: m.Tool.Duration, Bytes: uint32(m.Content.Len()), Hash: hash(m.Content), Outcome: msg.OutcomeOK}
	if m.IsError {
		e.Outcome, e.Error, e.Message = msg.OutcomeError, strings.Clone(m.Tool.ErrorType), head(m.Content)
		if e.Error == "" {
			e.Error = "tool_error"
		}
		if e.Error == "cancelled" || e.Error == "interrupted" || e.Error == "denied" { // a person's decision is no failure
			e.Outcome = msg.OutcomeCancelled
		}
	}
	return e
}

// completed is a call with its result.
type completed struct {
	Call    *call       `json:"call"`
	End     int64       `json:"end"`
	Result  uint32      `json:"result,omitempty"` // bytes
	Outcome msg.Outcome `json:"outcome"`
	Error   string      `json:"error,omitempty"`
	Message string      `json:"message,omitempty"`

	Tokens uint32         `json:"tokens,omitempty"` // see usage.attribute
	From   msg.Provenance `json:"from,omitempty"`
	Tier   string         `json:"tier,omitempty"` // of the response that read the result
}

// copy copies the result with its call.
func (t *completed) copy() completed {
	c := *t
	c.Call = new(*t.Call)
	return c
}

// record is the memory of a completed call that caused a run, or may have.
type record struct {
	Run  string `json:"run"`
	Root string `json:"root"`
	To   string `json:"to,omitempty"`
	link.Edge
	// Call is kept as long as a message may change it: a file beside the child's transcript
	// that is read late, or a child that the caller does not wait for.
	Call *completed `json:"told,omitempty"`
}

// compact drops the call when nothing can change it any more: its child is certain, and the
// caller has waited for it.
func (d *record) compact() {
	if d.Link >= msg.ByNativeID && !d.Call.Call.Async && !d.Call.Call.correlates() {
		d.Call = nil
	}
}

// calls are the calls of a session.
type calls struct {
	Open map[string]*call `json:"open,omitempty"` // without a result
	// Done are the calls that completed, for children that are read late.
	Done      map[string]record `json:"done,omitempty"`
	DoneOrder []string          `json:"done_order,omitempty"`
	// Forgot is set if Done had more, other than inferred calls.
	Forgot bool `json:"forgot,omitempty"`
	// Facts are edges of calls that no message has made yet, oldest first: a file beside a
	// transcript may be read before both.
	Facts []link.Fact `json:"links,omitempty"`
	// Early are results of calls that no message has made yet, oldest first.
	Early []callResult `json:"early,omitempty"`
}

// get returns an open call, or a completed one that a message may change; else nil.
func (cs *calls) get(id string) *call {
	if c := cs.Open[id]; c != nil {
		return c
	}
	if d := cs.Done[id]; d.Call != nil {
		return d.Call.Call
	}
	return nil
}

// complete adds the record of a completed call and drops the oldest.
func (cs *calls) complete(id string, d record) {
	if _, ok := cs.Done[id]; !ok {
		cs.DoneOrder = append(cs.DoneOrder, id)
	}
	cs.Done[id] = d
	if len(cs.DoneOrder) > maxDone {
		oldest := cs.DoneOrder[0]
		cs.Forgot = cs.Forgot || oldest != msg.InferredCall(cs.Done[oldest].Child)
		delete(cs.Done, oldest)
		cs.DoneOrder = cs.DoneOrder[1:]
	}
}

// addEarly keeps a result whose call has not been read.
func (cs *calls) addEarly(e callResult) {
	cs.Early = slices.DeleteFunc(cs.Early, func(old callResult) bool { return old.Call == e.Call })
	if len(cs.Early) >= maxEarly {
		cs.Early = slices.Delete(cs.Early, 0, 1)
	}
	cs.Early = append(cs.Early, e)
}

// takeEarly removes and returns the result of a call that was read before it.
func (cs *calls) takeEarly(id string) (e callResult, ok bool) {
	at := slices.IndexFunc(cs.Early, func(e callResult) bool { return e.Call == id })
	if at < 0 {
		return e, false
	}
	e = cs.Early[at]
	cs.Early = slices.Delete(cs.Early, at, at+1)
	return e, true
}

// addFact keeps an edge whose call has not been read.
func (cs *calls) addFact(f link.Fact) {
	if slices.Contains(cs.Facts, f) {
		return
	}
	if cs.Facts = append(cs.Facts, f); len(cs.Facts) > maxFacts {
		cs.Facts = cs.Facts[1:]
	}
}

// startCall applies a message that makes a call; a repeated one completes the first. It
// returns the id of the call's span.
func (g handler) startCall(r *run, m *msg.Message) msg.SpanID {
	c := g.Open[m.Tool.CallID]
	if c == nil {
		c = g.newCall(r, m)
	}
	c.touch()
	c.Lost = false
	c.Alive = max(c.Alive, g.alive)
	fill(field{&c.Tool, m.Tool.Name}, field{&c.Server, m.Tool.Server}, field{&c.Model, m.Model})
	c.delegate(&m.Delegation, m.Signal == msg.RunStart)
	c.identify(m.Tool.ProtocolID)
	c.Internal = c.Internal || m.Tool.Internal
	c.Arguments, c.Hash, c.Signature = uint32(m.Tool.Arguments.Len()), hash(m.Tool.Arguments), g.signatures.of(m.Tool.Arguments)
	c.Judged.Begin(g.learned.History, m, g.alive, g.read.UnixNano())
	id := g.ids.call(c)
	if !g.flushing {
		if e, ok := g.takeEarly(c.ID); ok {
			g.complete(c, e)
		}
	}
	return id
}

// newCall opens a call.
func (g handler) newCall(r *run, m *msg.Message) *call {
	id := strings.Clone(m.Tool.CallID)
	c := &call{
		ID: id, Run: r.ID, Start: m.Time, Inferred: m.Precision == msg.Inferred, Last: m.Time,
		Delegation: m.Kind == msg.Delegation, Unrecorded: m.Attr(msg.Results) == msg.None,
	}
	if d, ok := g.Done[id]; ok && d.Run == r.ID { // repeated after its end
		c.Edge = d.Edge
		if d.Call != nil {
			c.Worked, c.Moves = d.Call.Call.Worked, d.Call.Call.Moves
		}
	}
	c.Failures = r.Anomalies.Failures(id, m.Tool.Name, m.Time)
	c.Again = g.repeats(r, c)
	// Before orphans that wait for the call take the name, and before one that it names is looked for.
	c.delegateTo(&m.Delegation)
	fill(field{&c.Child, m.Delegation.ChildRun})
	g.Open[id] = c
	linker(g).linkNew(c)
	if c.Delegation {
		g.detectFanOut(r, c, m)
	}
	return c
}

// delegate adds a message's facts about the work that the call hands over; ofRun is set if
// the message's correlation belongs to its run.
func (c *call) delegate(d *msg.Delegate, ofRun bool) {
	c.delegateTo(d)
	if d.ChildRun != "" {
		fill(field{&c.Child, d.ChildRun})
		c.Named = true
	}
	if !ofRun {
		fill(field{&c.CorrelationID, d.CorrelationID}, field{&c.CorrelationPrompt, d.CorrelationPrompt})
	}
	c.Link, c.Confidence = max(c.Link, d.Link), max(c.Confidence, d.Confidence)
	c.Async = c.Async || d.Async
}

// identified applies a message that repeats a call, or the result of one that has
// completed, now with the protocol's id: nothing but the call's span changes.
func (g handler) identified(m *msg.Message) (msg.SpanID, bool) {
	id := m.Tool.ProtocolID
	if id == msg.UnknownID || m.Complete != msg.Complete {
		return msg.SpanID{}, false
	}
	if c := g.Open[m.Tool.CallID]; c != nil {
		if c.ProtocolID != msg.UnknownID || m.Kind != msg.ToolCall && m.Kind != msg.Delegation {
			return msg.SpanID{}, false
		}
		c.identify(id)
		c.touchOpen()
		return g.ids.call(c), true
	}
	d, ok := g.Done[m.Tool.CallID]
	if !ok || d.Call == nil || d.Call.Call.ProtocolID == "" {
		return msg.SpanID{}, false
	}
	c := d.Call.Call
	span := g.ids.call(c)
	if c.ProtocolID == msg.UnknownID {
		c.identify(id)
		c.Moves++ // its times have not changed
		g.setRecord(c.ID, d)
	}
	return span, true
}

// endCall applies the result of a call and returns the id of the call's span. A result whose
// call has not been read waits for it: a conversation may be in several streams, which are
// not read in the order in which they were written.
func (g handler) endCall(r *run, m *msg.Message) msg.SpanID {
	c := g.Open[m.Tool.CallID]
	if c == nil {
		if m.Kind == msg.DelegationResult {
			linker(g).link(m.Tool.CallID, &m.Delegation)
		}
		_, known := g.Done[m.Tool.CallID]
		if !known && m.Complete > msg.Partial {
			g.addEarly(resultOf(m))
		}
		if known || m.Kind == msg.ToolResult {
			return g.ids.of(msg.SpanTool, m.Tool.CallID)
		}
		return msg.SpanID{}
	}
	if c.Tool == "" {
		c.Tool = strings.Clone(m.Tool.Name)
	}
	d := &m.Delegation
	if d.ChildRun != "" {
		linker(g).link(c.ID, d)
	}
	fill(field{&c.CorrelationID, d.CorrelationID})
	c.delegateTo(d)
	c.identify(m.Tool.ProtocolID)
	id := g.ids.call(c)
	if m.Complete == msg.Partial {
		c.observe(m.Time, g.alive)
		g.tentative(g.Runs[c.Run], c, resultOf(m))
		return id
	}
	g.complete(c, resultOf(m))
	return id
}

// complete completes a call. Its span is emitted when the message at hand has been applied.
func (g handler) complete(c *call, e callResult) {
	r := g.Runs[c.Run]
	t := completed{Call: c, End: max(e.Time, c.Start), Result: e.Bytes, Outcome: e.Outcome, Error: e.Error, Message: e.Message}
	if e.Took > 0 {
		t.End = c.Start + e.Took // measured
	}
	if c.Delegation && !c.Async {
		c.Worked = g.workedBefore(c, t.End)
	}
	delete(g.Open, c.ID)
	if r != nil {
		if c.Judged.Mark.Kind != 0 {
			reporter(g).endVerdict(r, c)
		}
		if !g.repeats(r, c) {
			r.addResult(&t)
		}
		g.learn(&t)
		g.out.pending = append(g.out.pending, pending{kind: callCompleted, group: g.group, run: r, call: t})
		switch {
		case c.Delegation:
			r.Delegations--
		case !c.Internal: // the framework's own machinery repeats itself for good reasons
			g.detectResult(r, c, e)
		}
	}
	if c.Delegation || c.correlates() || c.ProtocolID == msg.UnknownID {
		g.remember(&t)
	}
}

// repeats reports whether a call that completes had done so before: the model has read its result.
func (g handler) repeats(r *run, c *call) bool {
	d, done := g.Done[c.ID]
	return done && d.Run == c.Run || r.Anomalies.Has(c.ID)
}

// remember keeps the record of a completed call and ends the run that it caused.
func (g handler) remember(t *completed) {
	c, kept := t.Call, t.copy()
	d := record{Run: c.Run, Root: c.Run, To: c.To, Edge: c.Edge, Call: &kept}
	d.compact()
	if r := g.Runs[c.Run]; r != nil {
		d.Root = r.Root
	}
	g.calls.complete(c.ID, d)
	for _, child := range g.Runs {
		if child.Call == c.ID || child.ID == c.Child {
			child.end(byCall)
		}
	}
}

// workedBefore is when the run that a delegation caused ended, if the protocol stated so
// before the result, which followed later: results of calls that were made together are
// often reported together. Only an end before it in the same stream counts: a replay may
// read streams in another order.
func (g handler) workedBefore(c *call, result int64) (at int64) {
	caller := g.Runs[c.Run]
	for _, r := range g.Runs {
		if caller != nil && r.Linked && r.Call == c.ID && r.Stream == caller.Stream && c.Start < r.End && r.End < result {
			at = max(at, r.End)
		}
	}
	return at
}

// worked records when the run that a delegation caused ended. It reports whether that
// changed the call.
func (g *group) worked(id string, end int64) (changed bool) {
	if c := g.Open[id]; c != nil {
		if end <= c.Worked {
			return false
		}
		c.Worked = end
		c.touchEnded()
		return true
	}
	d, ok := g.Done[id]
	if !ok || d.Call == nil || !d.Call.Call.Async || end <= d.Call.Call.Worked {
		return false
	}
	d.Call.Call.Worked = end
	g.setRecord(id, d)
	return true
}

// setRecord replaces the record of a completed call, whose span is emitted again.
func (g *group) setRecord(id string, d record) {
	if r := g.Runs[d.Run]; d.Call != nil && r != nil {
		d.Call.Call.Edge = d.Edge
		g.out.pending = append(g.out.pending, pending{kind: callChanged, group: g, run: r, call: d.Call.copy()})
		d.compact()
	}
	g.Done[id] = d
}

// hash distinguishes texts. Texts of one run have one form, so that the body of a JSON string
// need not be unescaped.
func hash(t msg.Text) uint64 {
	if raw, _ := t.Alias(); raw != nil {
		return xxhash.Sum64(raw)
	}
	return xxhash.Sum64String(t.String())
}
