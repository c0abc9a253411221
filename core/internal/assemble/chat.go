package assemble

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// usage is the run's traffic with its model: the request, the responses and their tokens.
type usage struct {
	Model      string     `json:"model,omitempty"`   // the one that answered first
	AskedModel string     `json:"asked,omitempty"`   // of the last request
	Request    []msg.Attr `json:"request,omitempty"` // the parameters of the last request
	Provider   string     `json:"provider,omitempty"`
	StopReason string     `json:"stop,omitempty"`  // of the last response
	Input      int64      `json:"input,omitempty"` // when the model last got input

	Chat  *chat       `json:"chat,omitempty"`  // the open response
	Chats []chatStart `json:"chats,omitempty"` // for responses that the stream repeats
	// First is the first token of a response that nothing else is known of yet.
	First *chatStart `json:"first,omitempty"`

	Usage   msg.Tokens `json:"usage,omitzero"`
	Counted []counted  `json:"counting,omitempty"`
	Seen    []uint64   `json:"seen,omitempty"` // the usage messages that were counted, sorted

	Responses int             `json:"responses,omitempty"` // that have begun
	Prompt    prompt          `json:"spent,omitzero"`      // of the last response whose usage is known
	Results   []pendingResult `json:"carried,omitempty"`   // that the next response reads
}

// chat is an open response of a model.
type chat struct {
	ID         string     `json:"id"`
	Native     string     `json:"native,omitempty"` // the protocol's id, if ID is another
	Named      bool       `json:"named,omitempty"`  // ID is the protocol's
	Start      int64      `json:"start"`
	FirstToken int64      `json:"first_token,omitempty"`
	Last       int64      `json:"last"`
	Model      string     `json:"model,omitempty"` // that answered
	AskedModel string     `json:"asked,omitempty"`
	Request    []msg.Attr `json:"request,omitempty"`
	Provider   string     `json:"provider,omitempty"`
	Finish     string     `json:"finish,omitempty"`
	Usage      msg.Tokens `json:"usage,omitzero"`
	Error      string     `json:"error,omitempty"`
	Ordinal    int        `json:"nth,omitempty"`   // among the run's responses
	Ended      bool       `json:"ended,omitempty"` // Last is its end by the protocol: calls that begin later are parts of it

	span msg.SpanID // see ids
}

// chatStart is the memory of a response, for one that the stream repeats.
type chatStart struct {
	ID         string     `json:"id"`
	Start      int64      `json:"start"`
	FirstToken int64      `json:"first_token,omitempty"`
	Ordinal    int        `json:"nth,omitempty"`
	AskedModel string     `json:"asked,omitempty"`
	Request    []msg.Attr `json:"request,omitempty"`
	End        int64      `json:"end,omitempty"` // by the protocol
	// For parts that follow: calls often follow the tokens, and name neither the reason for the stop nor an error.
	Usage    msg.Tokens `json:"usage,omitzero"`
	Model    string     `json:"model,omitempty"`
	Provider string     `json:"provider,omitempty"`
	Finish   string     `json:"finish,omitempty"`
	Error    string     `json:"error,omitempty"`
}

// counted is usage that was added to the run and that a later version of its message may
// replace: the last one, and those that were not complete, because responses may be mixed.
type counted struct {
	Message  uint64     `json:"message,omitempty"`
	Tokens   msg.Tokens `json:"tokens,omitzero"`
	Complete bool       `json:"complete,omitempty"`
}

// input records that the model got something to answer. An open response without an id ends
// with it; one with an id may go on, because tools start while a response is streaming.
func (g handler) input(r *run, t int64) {
	if r.Chat != nil && !r.Chat.Named {
		g.closeChat(r)
	}
	r.Input = max(r.Input, t)
	if r.First != nil && r.First.ID == "" { // the response of that token never followed
		r.First = nil
	}
}

// byModel reports whether a model wrote the message. The messages of a workflow and the calls
// of the framework name neither a model nor a response. A call without a response id is part of the open response, if there is one, and does not begin another.
func (r *run) byModel(m *msg.Message) bool {
	if m.Model != "" || m.ResponseID != "" {
		return true
	}
	called := m.Kind == msg.ToolCall || m.Kind == msg.Delegation
	return r.Agent.Kind != msg.KindWorkflow && !m.Tool.Internal && (!called || r.Chat != nil)
}

// output adds a part to the response of the message.
func (g handler) output(r *run, m *msg.Message) *chat {
	if c := r.Chat; c != nil && m.ResponseID != "" && c.ID != m.ResponseID {
		g.closeChat(r)
		r.Input = max(r.Input, c.Last)
	}
	if r.Chat == nil {
		if r.Responses == 0 && !g.flushing {
			giveUp(g.group, g.Runs[r.Previous])
		}
		r.startChat(m)
	}
	c := r.Chat
	if !c.Ended {
		c.Last = max(c.Last, m.Time)
	}
	c.describe(m)
	return c
}

// modelEnd ends the response of the message. One that has no parts begins by it.
func (g handler) modelEnd(r *run, m *msg.Message) {
	began, err := strconv.ParseInt(m.Attr(msg.ResponseStart), 10, 64)
	exact := err == nil && m.ResponseID != ""
	if exact && !slices.ContainsFunc(r.Chats, func(known chatStart) bool { return known.ID == m.ResponseID }) {
		g.output(r, m)
	}
	c := r.Chat
	if c == nil || c.Named && m.ResponseID != "" && m.ResponseID != c.ID {
		return
	}
	c.Last = max(c.Last, m.Time)
	c.describe(m)
	if !exact {
		return
	}
	c.Start, c.Last, c.Ended = min(began, m.Time), m.Time, true
	for i := range r.Chats {
		if r.Chats[i].ID == c.ID {
			r.Chats[i].Start, r.Chats[i].End = c.Start, c.Last
		}
	}
}

// closeChat closes the open response. Its span is emitted when the message at hand has been
// applied.
func (g *group) closeChat(r *run) {
	c := r.Chat
	r.stops(c)
	r.Chat = nil
	for i := range r.Chats {
		if k := &r.Chats[i]; k.ID == c.ID {
			k.Model, k.Provider, k.Finish, k.Error = c.Model, c.Provider, c.Finish, c.Error
		}
	}
	g.out.pending = append(g.out.pending, pending{kind: chatClosed, group: g, run: r, chat: c})
}

// stops takes the reason for which the last response stopped. A stream may repeat an earlier one.
func (u *usage) stops(c *chat) {
	if c.Ordinal >= u.Responses {
		u.StopReason = c.Finish
	}
}

// startChat begins a response when the model last got input; one that the stream repeats
// begins when it began.
func (r *run) startChat(m *msg.Message) {
	id := m.ResponseID
	if id == "" {
		id = m.Key
	}
	c := &chat{ID: strings.Clone(id), Named: m.ResponseID != "", Start: min(r.Input, m.Time), AskedModel: r.AskedModel, Request: r.Request}
	if c.Named {
		c.Native = strings.Clone(m.Attr(link.ReusedID))
	}
	r.Chat = c
	at := slices.IndexFunc(r.Chats, func(known chatStart) bool { return known.ID == id })
	if at >= 0 {
		known := &r.Chats[at]
		c.Last, c.Ended = known.End, known.End != 0
		c.Start, c.FirstToken, c.Ordinal, c.AskedModel, c.Request, c.Usage = known.Start, known.FirstToken, known.Ordinal, known.AskedModel, known.Request, known.Usage
		c.Model, c.Provider, c.Finish, c.Error = known.Model, known.Provider, known.Finish, known.Error
	} else {
		r.Responses++
		c.Ordinal = r.Responses
		r.dropResults()
		if len(r.Chats) >= maxChats {
			r.Chats = slices.Delete(r.Chats, 0, maxChats/2)
		}
		r.Chats = append(r.Chats, chatStart{ID: c.ID, Start: c.Start, Ordinal: c.Ordinal, AskedModel: c.AskedModel, Request: c.Request})
	}
	if f := r.First; f != nil && (f.ID == "" || f.ID == c.ID) {
		r.First = nil
		r.setFirstToken(f.Start)
	}
}

// firstToken records when a response began to arrive: the open one, or one that nothing
// else is known of yet.
func (r *run) firstToken(m *msg.Message) {
	if c := r.Chat; c != nil && (m.ResponseID == "" || m.ResponseID == c.ID) {
		r.setFirstToken(m.Time)
		return
	}
	r.First = &chatStart{ID: strings.Clone(m.ResponseID), Start: m.Time}
}

// setFirstToken sets the time of the first token of the open response, once.
func (r *run) setFirstToken(t int64) {
	c := r.Chat
	if c.FirstToken != 0 {
		return
	}
	c.FirstToken = t
	for i := range r.Chats {
		if r.Chats[i].ID == c.ID {
			r.Chats[i].FirstToken = t
		}
	}
}

// describe adds the facts that a part of the response states.
func (c *chat) describe(m *msg.Message) {
	if c.Model == "" && m.Model != "" {
		c.Model = strings.Clone(m.Model)
	}
	if c.Provider == "" && m.Provider != "" {
		c.Provider = strings.Clone(m.Provider)
	}
	if m.FinishReason != "" && (m.Signal != msg.RunEnd || m.ResponseID != "") && m.Attr(msg.FinishReasonOf) == "" { // else it is how the run ended
		c.Finish = strings.Clone(m.FinishReason)
	}
	if m.IsError {
		c.Error = errorType(m)
	}
}

// count counts the tokens of a response, once however often the protocol repeats them, and
// returns the id of the span that they belong to.
func (g handler) count(r *run, m *msg.Message) msg.SpanID {
	id := binary.BigEndian.Uint64(m.Host.ID[:])
	if m.ResponseID == "" && m.Complete == msg.Summary && len(r.Seen) > 0 && m.Attr(msg.TotalOf) == "" {
		if _, seen := slices.BinarySearch(r.Seen, id); !seen {
			return msg.SpanID{} // the rebuilt total of a run that was counted by response
		}
	}
	r.count(id, m.Usage, m.Complete == msg.Complete)
	if m.ResponseID == "" { // of the run as a whole
		return msg.SpanID{}
	}
	c := g.output(r, m)
	if !weaker(m.Usage, c.Usage) {
		c.Usage = m.Usage
	}
	if m.Complete > msg.Partial {
		for i := range r.Chats { // parts of the response may still follow
			if r.Chats[i].ID == c.ID {
				r.Chats[i].Usage = c.Usage
			}
		}
		g.closeChat(r)
		g.attribute(r, c, c.Usage)
		r.Input = max(r.Input, c.Last)
	} else if g.flushing && m.Usage.Provenance == msg.TranscriptFinal && g.awaits(r) { // it is over, though nothing has followed it
		g.out.pending = append(g.out.pending, pending{kind: chatOver, group: g.group, run: r, chat: c})
	}
	return g.ids.chat(c)
}

// awaits reports whether the run waits for the result of a call.
func (cs *calls) awaits(r *run) bool {
	for _, c := range cs.Open {
		if c.Run == r.ID && !c.Async && c.pending() {
			return true
		}
	}
	return false
}

// weaker reports whether counts of a response are none to replace those that are known: of a copy of its transcript that was
// cut, as that of a session which is forked in the middle of a response.
func weaker(t, known msg.Tokens) bool {
	return t.Provenance < known.Provenance || t.Provenance == msg.TranscriptPartial && known.Provenance == t.Provenance && t.Total() < known.Total()
}

// count adds a usage message's tokens to the run's. A later version of one that was not
// complete, or of the last one, replaces it.
func (u *usage) count(id uint64, t msg.Tokens, complete bool) {
	at, seen := slices.BinarySearch(u.Seen, id)
	old := slices.IndexFunc(u.Counted, func(c counted) bool { return c.Message == id })
	switch {
	case old >= 0 && weaker(t, u.Counted[old].Tokens):
		return
	case old >= 0:
		o := u.Counted[old].Tokens
		u.Usage.Input -= o.Input
		u.Usage.Output -= o.Output
		u.Usage.CacheRead -= o.CacheRead
		u.Usage.CacheWrite -= o.CacheWrite
		u.Usage.Reasoning -= o.Reasoning
		u.Usage.CacheWrite1h -= o.CacheWrite1h
		u.Usage.Stated -= o.Stated
		u.Counted = slices.Delete(u.Counted, old, old+1)
	case seen:
		return
	case len(u.Seen) < maxSeen:
		u.Seen = slices.Insert(u.Seen, at, id)
	}
	u.Usage = u.Usage.Add(t)
	u.Counted = slices.DeleteFunc(u.Counted, func(c counted) bool { return c.Complete })
	if len(u.Counted) >= maxCounted {
		u.Counted = slices.Delete(u.Counted, 0, 1)
	}
	u.Counted = append(u.Counted, counted{id, t, complete})
}

// The result of a call is part of every later request of its run. The protocols do not state
// how many tokens that is; but a request is as long as the one before, the answer to that,
// and the input since. So, for two consecutive responses of one model:
//
//	input(next) - input(before) - output(before) = results in between, and anything else that was added
//
// where input is all of it, cached or not, and output contains the reasoning, which goes
// back to the model as long as it calls tools. Several results share this by their size.
// A prompt or a note of the framework that is added with them counts with them, because the
// counts do not separate them. A difference that does not add up, after a compaction or
// where usage is missing, is unknown.

// maxResults is the number of results of a run that wait for the next response's usage.
const maxResults = 64

// prompt is the length of a request and of its answer.
type prompt struct {
	Response int            `json:"response"` // ordinal
	Model    string         `json:"model,omitempty"`
	Input    uint64         `json:"input"`
	Output   uint64         `json:"output"`
	From     msg.Provenance `json:"from"`
}

// pendingResult is a completed call whose result the next response reads.
type pendingResult struct {
	Call  completed `json:"told"`
	After int       `json:"after"` // the number of responses that had begun
}

// addResult records a result for the next response, once.
func (u *usage) addResult(t *completed) {
	if slices.ContainsFunc(u.Results, func(k pendingResult) bool { return k.Call.Call.ID == t.Call.ID }) {
		return
	}
	if len(u.Results) >= maxResults {
		u.Results = slices.Delete(u.Results, 0, 1)
	}
	u.Results = append(u.Results, pendingResult{*t, u.Responses})
}

// dropResults drops the results that the usage of the response before did not account for.
func (u *usage) dropResults() {
	u.Results = slices.DeleteFunc(u.Results, func(k pendingResult) bool { return k.After < u.Responses-1 })
}

// attribute divides the growth of the prompt between two responses among the results in
// between, whose spans are emitted again with their tokens.
func (g handler) attribute(r *run, c *chat, used msg.Tokens) {
	before := r.Prompt
	now := prompt{Response: c.Ordinal, Model: c.Model, Input: used.Input + used.CacheRead + used.CacheWrite, Output: used.Output + used.Reasoning, From: used.Provenance}
	if c.Ordinal == 0 || c.Ordinal < before.Response {
		return
	}
	r.Prompt = now
	if before.Response != now.Response-1 || before.Model != now.Model || before.Input == 0 || now.Input < before.Input+before.Output {
		return
	}
	from := min(before.From, now.From)
	if from == msg.NoProvenance {
		return
	}
	var bytes uint64
	var list []completed
	r.Results = slices.DeleteFunc(r.Results, func(k pendingResult) bool {
		if k.After != now.Response-1 {
			return false
		}
		bytes += uint64(k.Call.Result)
		list = append(list, k.Call)
		return true
	})
	left := now.Input - before.Input - before.Output
	for i := range list {
		t := &list[i]
		share := left / uint64(len(list)-i)
		if bytes > 0 {
			share = left * uint64(t.Result) / bytes
		}
		left, bytes = left-share, bytes-uint64(t.Result)
		t.Tokens, t.From, t.Tier = uint32(share), from, strings.Clone(used.Tier)
		if d, ok := g.Done[t.Call.ID]; ok { // a delegation's child may be known by now
			if d.Call != nil {
				d.Call.Tokens, d.Call.From, d.Call.Tier = t.Tokens, t.From, t.Tier
				t.Call = new(*d.Call.Call)
			}
			t.Call.Edge = d.Edge
		}
		g.out.pending = append(g.out.pending, pending{kind: tokensKnown, group: g.group, run: r, call: *t})
	}
}
