package conversation

import (
	"cmp"
	"strconv"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
)

// Counts are the tokens of a response as providers count them: Input excludes the cached
// classes, Output includes Reasoning.
type Counts struct {
	Input      uint64 `json:",omitempty"`
	Output     uint64 `json:",omitempty"`
	CacheRead  uint64 `json:",omitempty"`
	CacheWrite uint64 `json:",omitempty"`
	Reasoning  uint64 `json:",omitempty"`
	// CacheWrite1h is how much of CacheWrite is kept for an hour.
	CacheWrite1h uint64 `json:",omitempty"`
}

// CountsOf returns the counts of exclusive classes.
func CountsOf(t msg.Tokens) Counts {
	return Counts{t.Input, t.Output + t.Reasoning, t.CacheRead, t.CacheWrite, t.Reasoning, t.CacheWrite1h}
}

// Max returns the higher count of each class.
func (c Counts) Max(o Counts) Counts {
	return Counts{
		max(c.Input, o.Input), max(c.Output, o.Output), max(c.CacheRead, o.CacheRead), max(c.CacheWrite, o.CacheWrite), max(c.Reasoning, o.Reasoning),
		max(c.CacheWrite1h, o.CacheWrite1h),
	}
}

// Over returns the counts of c, and those of o in the classes that c lacks.
func (c Counts) Over(o Counts) Counts {
	return Counts{
		cmp.Or(c.Input, o.Input), cmp.Or(c.Output, o.Output), cmp.Or(c.CacheRead, o.CacheRead), cmp.Or(c.CacheWrite, o.CacheWrite), cmp.Or(c.Reasoning, o.Reasoning),
		cmp.Or(c.CacheWrite1h, o.CacheWrite1h),
	}
}

// Add returns the sum of each class.
func (c Counts) Add(o Counts) Counts {
	return Counts{
		c.Input + o.Input, c.Output + o.Output, c.CacheRead + o.CacheRead, c.CacheWrite + o.CacheWrite, c.Reasoning + o.Reasoning,
		c.CacheWrite1h + o.CacheWrite1h,
	}
}

// Less returns c without o, and 0 where o is higher.
func (c Counts) Less(o Counts) Counts {
	o = Counts{
		min(c.Input, o.Input), min(c.Output, o.Output), min(c.CacheRead, o.CacheRead), min(c.CacheWrite, o.CacheWrite), min(c.Reasoning, o.Reasoning),
		min(c.CacheWrite1h, o.CacheWrite1h),
	}
	return Counts{
		c.Input - o.Input, c.Output - o.Output, c.CacheRead - o.CacheRead, c.CacheWrite - o.CacheWrite, c.Reasoning - o.Reasoning,
		c.CacheWrite1h - o.CacheWrite1h,
	}
}

// SameInput reports whether the classes of the input are equal.
func (c Counts) SameInput(o Counts) bool {
	return c.Input == o.Input && c.CacheRead == o.CacheRead && c.CacheWrite == o.CacheWrite
}

// Sub returns c without o; ok is false when o is higher in a class. Reasoning, and the cache of an
// hour, which not each count has, do not decide.
func (c Counts) Sub(o Counts) (rest Counts, ok bool) {
	if c.Input < o.Input || c.Output < o.Output || c.CacheRead < o.CacheRead || c.CacheWrite < o.CacheWrite {
		return Counts{}, false
	}
	rest = Counts{c.Input - o.Input, c.Output - o.Output, c.CacheRead - o.CacheRead, c.CacheWrite - o.CacheWrite, 0, 0}
	if c.Reasoning > o.Reasoning {
		rest.Reasoning = c.Reasoning - o.Reasoning
	}
	rest.CacheWrite1h = min(c.CacheWrite1h-min(c.CacheWrite1h, o.CacheWrite1h), rest.CacheWrite)
	return rest, true
}

// Tokens returns the counts in exclusive classes.
func (c Counts) Tokens(p msg.Provenance) msg.Tokens {
	reasoning := min(c.Reasoning, c.Output)
	return msg.Tokens{
		Input: c.Input, Output: c.Output - reasoning, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite, Reasoning: reasoning,
		CacheWrite1h: min(c.CacheWrite1h, c.CacheWrite), Provenance: p,
	}
}

// Response is one response of the model, which a format may spread over several records
// that repeat its id and its tokens.
type Response struct {
	ID       string
	Model    string `json:",omitempty"`
	Provider string `json:",omitempty"`
	Stop     string `json:",omitempty"` // finish reason

	Run  string `json:",omitempty"`
	Last string `json:",omitempty"` // key of the last part
	At   Time   `json:",omitzero"`  // of the last record

	Texts    int `json:",omitempty"` // parts of each kind, for their keys
	Thoughts int `json:",omitempty"`

	Counts     Counts         `json:",omitzero"`  // the highest of all records
	Provenance msg.Provenance `json:",omitempty"` // of Counts; none: there is no usage
	Tier       string         `json:",omitempty"` // as msg.Tokens has it
	Stated     uint64         `json:",omitempty"` // the same
	Done       bool           `json:",omitempty"` // the usage was emitted as complete
}

// Key returns the key of the next text or thought of the response.
func (r *Response) Key(kind msg.Kind) string {
	if kind == msg.Reasoning {
		return Ordinal(r.ID+"/thinking", &r.Thoughts)
	}
	return Ordinal(r.ID+"/text", &r.Texts)
}

// Ordinal returns the key of the next part of a kind: key, key/1, key/2, ...
func Ordinal(key string, n *int) string {
	*n++
	if *n == 1 {
		return key
	}
	return key + "/" + strconv.Itoa(*n-1)
}

// Mark makes the message a part of the response.
func (r *Response) Mark(m *msg.Message) {
	m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.ID
}

// Said makes the message the next text or thought of the response.
func (r *Response) Said(m *msg.Message, text msg.Text) *msg.Message {
	m.Role, m.Content = msg.RoleAssistant, text
	r.Mark(m)
	r.Last = m.Key
	return m
}

// Next makes the message the next part of the response, after the part before it.
func (r *Response) Next(m *msg.Message) *msg.Message {
	m.Role, m.ParentKey, r.Last = msg.RoleAssistant, r.Last, m.Key
	r.Mark(m)
	return m
}

// Count adds the counts of a record, which repeat those of the records before it or exceed
// them. The strongest provenance counts.
func (r *Response) Count(c Counts, p msg.Provenance) {
	r.Counts, r.Provenance = r.Counts.Max(c), max(r.Provenance, p)
}

// Pass is a part of a response that another model took: it was asked for advice, made a summary, or declined to go on. Its tokens
// are not those of the model that answers.
type Pass struct {
	Model  string
	Counts Counts
}

// Passes adds the usage messages of the passes of other models after that of the response, which m is. Each is a response of its own,
// that all views of it name alike.
func Passes(out *decoder.Output, m msg.Message, passes []Pass) {
	for _, p := range passes {
		name := m.ResponseID + "/" + p.Model
		n := out.Add()
		*n = m
		n.Key, n.ParentKey, n.ResponseID, n.Model = "usage:"+name, m.Key, name, p.Model
		n.Usage, n.FinishReason, n.Signal, n.Attrs = p.Counts.Tokens(m.Usage.Provenance), "", msg.NoSignal, nil
		n.Usage.Tier = m.Usage.Tier
	}
}

// Usage adds the usage message of the response, unless there are no counts or it was
// emitted as complete before; it returns nil then. The caller sets session and agent.
func (r *Response) Usage(out *decoder.Output, complete msg.Completeness) *msg.Message {
	if r.Done || r.Provenance == msg.NoProvenance {
		return nil
	}
	m := out.Add()
	m.Kind, m.Key, m.ParentKey = msg.Usage, "usage:"+r.ID, r.Last
	m.Run, m.Complete, m.Hidden = r.Run, complete, true
	r.At.Set(m)
	r.Mark(m)
	m.FinishReason = r.Stop
	p := r.Provenance
	if p == msg.TranscriptPartial && r.Stop != "" {
		p = msg.TranscriptFinal
	}
	m.Usage = r.Counts.Tokens(p)
	m.Usage.Tier, m.Usage.Stated = r.Tier, r.Stated
	r.Done = complete == msg.Complete
	return m
}
