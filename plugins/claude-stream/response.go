package claudestream

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxRecent = 32  // responses of a lane that are over and can still be told again
	maxLines  = 256 // lines of one response that are recognized when they are told again
)

// response is one response of the model, which comes as a line for each of its
// content blocks, and before that in pieces, if those were asked for.
type response struct {
	ID       string
	Model    string `json:",omitempty"`
	Provider string `json:",omitempty"`
	Stop     string `json:",omitempty"`

	Lines    []uint64 `json:",omitempty"` // hashes of the uuids of its lines
	Texts    int      `json:",omitempty"`
	Thoughts int      `json:",omitempty"`
	Blocks   []block  `json:",omitempty"` // of which only pieces have come, in order
	Begun    bool     `json:",omitempty"` // its first piece was told of

	Run     string `json:",omitempty"`
	Last    string `json:",omitempty"` // key of its last part
	Time    int64  `json:",omitempty"` // of its last line
	Prec    msg.Precision
	Done    bool   `json:",omitempty"` // its usage was given
	Counted bool   `json:",omitempty"` // it has usage
	Final   bool   `json:",omitempty"` // and its last count
	Counts  counts `json:",omitzero"`  // the highest of all lines
}

// counts are tokens in exclusive classes; Output has the reasoning.
type counts struct {
	Input      uint64 `json:",omitempty"`
	Output     uint64 `json:",omitempty"`
	CacheRead  uint64 `json:",omitempty"`
	CacheWrite uint64 `json:",omitempty"`
	Reasoning  uint64 `json:",omitempty"`
}

func read(u jsonv.Value) counts {
	c := counts{
		Input: u.Get("input_tokens").Uint(), Output: u.Get("output_tokens").Uint(), CacheRead: u.Get("cache_read_input_tokens").Uint(),
		CacheWrite: u.Get("cache_creation_input_tokens").Uint(), Reasoning: u.Path("output_tokens_details", "thinking_tokens").Uint(),
	}
	parts := u.Get("cache_creation")
	c.CacheWrite = max(c.CacheWrite, parts.Get("ephemeral_5m_input_tokens").Uint()+parts.Get("ephemeral_1h_input_tokens").Uint())
	return c
}

func (c counts) most(o counts) counts {
	return counts{max(c.Input, o.Input), max(c.Output, o.Output), max(c.CacheRead, o.CacheRead), max(c.CacheWrite, o.CacheWrite), max(c.Reasoning, o.Reasoning)}
}

func (c counts) plus(o counts) counts {
	return counts{c.Input + o.Input, c.Output + o.Output, c.CacheRead + o.CacheRead, c.CacheWrite + o.CacheWrite, c.Reasoning + o.Reasoning}
}

// minus is c without o; ok is false when o is more in some class. Reasoning, which
// not every count has, is left to c.
func (c counts) minus(o counts) (rest counts, ok bool) {
	if c.Input < o.Input || c.Output < o.Output || c.CacheRead < o.CacheRead || c.CacheWrite < o.CacheWrite {
		return counts{}, false
	}
	rest = counts{c.Input - o.Input, c.Output - o.Output, c.CacheRead - o.CacheRead, c.CacheWrite - o.CacheWrite, 0}
	if c.Reasoning > o.Reasoning {
		rest.Reasoning = c.Reasoning - o.Reasoning
	}
	return rest, true
}

func (c counts) tokens(p msg.Provenance) msg.Tokens {
	thought := min(c.Reasoning, c.Output)
	return msg.Tokens{Input: c.Input, Output: c.Output - thought, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite, Reasoning: thought, Provenance: p}
}

// response returns the response with that id, begun if need be.
func (d *stream) response(ln *line, id, model jsonv.Value) *response {
	l := ln.lane
	if l.Response == nil || !same(id, l.Response.ID) {
		d.finish(ln, l)
		l.Response = l.open(ln, id)
	}
	r := l.Response
	model.Equal(r.Model)
	if r.Model == "" {
		r.Model = ident(model)
		r.Provider = provider(r.ID, r.Model)
	}
	return r
}

// open begins a response, or takes up one that was over.
func (l *lane) open(ln *line, id jsonv.Value) *response {
	for i := len(l.Recent) - 1; i >= 0; i-- {
		if r := l.Recent[i]; same(id, r.ID) {
			l.Recent = slices.Delete(l.Recent, i, i+1)
			return r
		}
	}
	r := &response{ID: ident(id), Run: l.Run}
	if r.ID == "" {
		r.ID = ln.id()
	}
	return r
}

// again reports whether the response has had this very line.
func (r *response) again(ln *line) bool {
	h := hash(ln.uuid.Peek())
	if ln.uuid.Is(jsonv.String) && slices.Contains(r.Lines, h) {
		return true
	}
	if len(r.Lines) < maxLines {
		r.Lines = append(r.Lines, h)
	}
	return false
}

// count adds what a line says of the response's tokens. Every line repeats the
// counts as they stood when it was written, and they only grow.
func (r *response) count(ln *line, u jsonv.Value) {
	r.Time, r.Prec = ln.time, ln.prec
	if u.Is(jsonv.Object) {
		r.Counted = true
		r.Counts = r.Counts.most(read(u))
	}
}

func (r *response) stop(l *lane, v jsonv.Value) {
	if v.Is(jsonv.String) {
		r.Stop = ident(v)
		l.Stop = r.Stop
	}
}

// finish ends the response that goes on in a lane: what of it came in pieces only
// is given, and its usage.
func (d *stream) finish(ln *line, l *lane) {
	r := l.Response
	if r == nil {
		return
	}
	l.pieces(ln.out, true)
	l.usage(ln.out, msg.Complete)
	if !r.Done {
		l.Turn = l.Turn.plus(r.Counts)
	}
	l.Response = nil
	if len(l.Recent) == maxRecent {
		l.Recent = slices.Delete(l.Recent, 0, 1)
	}
	r.Done, r.Blocks = true, nil
	l.Recent = append(l.Recent, r)
}

// usage gives the tokens of the response that goes on in the lane.
func (l *lane) usage(out *decoder.Output, complete msg.Completeness) {
	r := l.Response
	if r == nil || r.Done || !r.Counted {
		return
	}
	m := out.Add()
	m.Kind, m.Key, m.ParentKey = msg.Usage, "usage:"+r.ID, r.Last
	m.Session, m.Run, m.Agent = l.Session, r.Run, l.agent()
	m.Time, m.Precision = r.Time, r.Prec
	m.Complete, m.Hidden = complete, true
	m.Model, m.Provider, m.ResponseID, m.FinishReason = r.Model, r.Provider, r.ID, r.Stop
	m.Usage = r.Counts.tokens(msg.TranscriptPartial)
	switch {
	case r.Final:
		m.Usage.Provenance = msg.Provider
	case r.Stop != "":
		m.Usage.Provenance = msg.TranscriptFinal
	}
}

// part adds a part of the response.
func (d *stream) part(ln *line, r *response, kind msg.Kind, key string) *msg.Message {
	m := d.give(ln, kind, key)
	m.Role = msg.RoleAssistant
	m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.ID
	m.ParentKey, r.Last = r.Last, key
	return m
}

// provider is who served the model, which the prefix of the message's id tells;
// other services that stand behind the CLI leave no trace.
func provider(id, model string) string {
	switch {
	case strings.HasPrefix(id, "msg_bdrk_"):
		return "aws.bedrock"
	case strings.HasPrefix(id, "msg_vrtx_"):
		return "gcp.vertex_ai"
	case strings.Contains(model, "claude"):
		return "anthropic"
	}
	return ""
}
