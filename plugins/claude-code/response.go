package claudecode

import (
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	maxRecent = 32  // responses that are over and can still be told again
	maxLines  = 256 // lines of one response that are recognized when they are told again
)

// response is one response of the model, which lies in the file as a line for
// each of its content blocks.
type response struct {
	ID       string // of the protocol
	Request  string `json:",omitempty"`
	Key      string // ID, unless two requests share it
	Model    string `json:",omitempty"`
	Provider string `json:",omitempty"`
	Stop     string `json:",omitempty"`

	Lines    []uint64 `json:",omitempty"` // hashes of the uuids of its lines
	Texts    int      `json:",omitempty"`
	Thoughts int      `json:",omitempty"`

	Run     string `json:",omitempty"`
	Last    string `json:",omitempty"` // key of its last part
	Time    int64  `json:",omitempty"` // of its last line
	Prec    msg.Precision
	Copied  bool `json:",omitempty"`
	Done    bool `json:",omitempty"` // its usage was given
	Counted bool `json:",omitempty"` // it has usage

	Input, Output, CacheRead, CacheWrite, Reasoning uint64     // the highest counts of all lines
	Extra                                           []msg.Attr `json:",omitempty"`
}

// response returns the response to which the assistant line belongs; again says
// that it has had this very line.
func (d *transcript) response(ln *line, m jsonv.Value) (r *response, again bool) {
	l := ln.lane
	id, request := m.Get("id"), ln.root.Get("requestId")
	if l.Response == nil || !l.Response.is(id, request) {
		d.finish(ln, l)
		l.Response = d.open(ln, id, request)
		l.Response.Model = ident(m.Get("model"))
		l.Response.Provider = provider(l.Response.ID, l.Response.Model)
	}
	r = l.Response
	m.Get("model").Equal(r.Model)
	h := hash(ln.uuid.Peek())
	if again = ln.uuid.Is(jsonv.String) && slices.Contains(r.Lines, h); !again && len(r.Lines) < maxLines {
		r.Lines = append(r.Lines, h)
	}
	return r, again
}

// is reports whether a line with that message id and request id belongs to r.
func (r *response) is(id, request jsonv.Value) bool {
	if !id.Is(jsonv.String) {
		return r.ID == r.Request && request.Is(jsonv.String) && same(request, r.Request)
	}
	return same(id, r.ID) && (r.Request == "" || !request.Is(jsonv.String) || same(request, r.Request))
}

// open begins a response, or takes up one that was over. Some gateways number
// the messages of each request anew, so that an id alone does not name one.
func (d *transcript) open(ln *line, id, request jsonv.Value) *response {
	taken := false
	for i := len(d.recent) - 1; i >= 0; i-- {
		if d.recent[i].is(id, request) {
			r := d.recent[i]
			d.recent = slices.Delete(d.recent, i, i+1)
			return r
		}
		taken = taken || same(id, d.recent[i].ID)
	}
	r := &response{ID: ident(id), Request: ident(request), Run: ln.run, Copied: ln.copied}
	if r.ID == "" {
		r.ID = r.Request
	}
	if r.ID == "" {
		r.ID = ln.id()
	}
	r.Key = r.ID
	if taken {
		r.Key += ":" + r.Request
	}
	return r
}

// finish ends the response that goes on in a lane and gives its usage.
func (d *transcript) finish(ln *line, l *lane) {
	r := l.Response
	if r == nil {
		return
	}
	complete := msg.Complete
	if r.Copied {
		complete = msg.Summary
	}
	l.usage(ln.out, complete)
	l.Response = nil
	if len(d.recent) == maxRecent {
		d.recent = slices.Delete(d.recent, 0, 1)
	}
	r.Done, r.Extra = true, nil
	d.recent = append(d.recent, r)
}

// usage gives the tokens of the response that goes on in the lane.
func (l *lane) usage(out *decoder.Output, complete msg.Completeness) {
	r := l.Response
	if r == nil || r.Done || !r.Counted {
		return
	}
	m := out.Add()
	m.Kind, m.Key, m.ParentKey = msg.Usage, "usage:"+r.Key, r.Last
	m.Session, m.Run, m.Agent = l.Session, r.Run, l.agent()
	m.Time, m.Precision = r.Time, r.Prec
	m.Complete, m.Hidden = complete, true
	m.Model, m.Provider, m.ResponseID, m.FinishReason = r.Model, r.Provider, r.Key, r.Stop
	m.Usage = msg.Tokens{
		Input: r.Input, Output: r.Output - min(r.Reasoning, r.Output), CacheRead: r.CacheRead, CacheWrite: r.CacheWrite,
		Reasoning: min(r.Reasoning, r.Output), Provenance: msg.TranscriptPartial,
	}
	if r.Stop != "" {
		m.Usage.Provenance = msg.TranscriptFinal
	}
	m.SetAttr("request_id", r.Request)
	m.Attrs = append(m.Attrs, r.Extra...)
}

// count adds what a line says of the response's tokens. Every line repeats the
// counts as they stood when it was written, and they only grow.
func (r *response) count(ln *line, m jsonv.Value) {
	r.Time, r.Prec = ln.time, ln.prec
	if stop := m.Get("stop_reason"); stop.Is(jsonv.String) {
		r.Stop = ident(stop)
		ln.lane.Stop = r.Stop
	}
	u := m.Get("usage")
	if !u.Is(jsonv.Object) {
		return
	}
	r.Counted = true
	write := u.Get("cache_creation_input_tokens")
	hour := u.Path("cache_creation", "ephemeral_1h_input_tokens").Uint()
	if !write.Is(jsonv.Number) {
		r.CacheWrite = max(r.CacheWrite, hour+u.Path("cache_creation", "ephemeral_5m_input_tokens").Uint())
	}
	r.CacheWrite = max(r.CacheWrite, write.Uint())
	r.Input = max(r.Input, u.Get("input_tokens").Uint())
	r.Output = max(r.Output, u.Get("output_tokens").Uint())
	r.CacheRead = max(r.CacheRead, u.Get("cache_read_input_tokens").Uint())
	r.Reasoning = max(r.Reasoning, u.Path("output_tokens_details", "thinking_tokens").Uint())
	r.extra("cache_write_1h_tokens", hour)
	r.extra("web_search_requests", u.Path("server_tool_use", "web_search_requests").Uint())
	r.extra("web_fetch_requests", u.Path("server_tool_use", "web_fetch_requests").Uint())
}

// extra keeps a count that has no class of its own.
func (r *response) extra(key string, n uint64) {
	if n == 0 {
		return
	}
	value := strconv.FormatUint(n, 10)
	for i := range r.Extra {
		if r.Extra[i].Key == key {
			r.Extra[i].Value = value
			return
		}
	}
	r.Extra = append(r.Extra, msg.Attr{Key: key, Value: value})
}

// part adds a part of the response.
func (d *transcript) part(ln *line, r *response, kind msg.Kind, key string) *msg.Message {
	m := d.give(ln, kind, key)
	m.Role = msg.RoleAssistant
	m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.Key
	ln.parent, r.Last = key, key
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
