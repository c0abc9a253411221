package link

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

const (
	maxClaims    = 4096 // of each kind, in a session; the oldest are evicted
	maxExchanges = 64   // of one call id
)

// ReusedID is the attribute with the response id as the protocol has it, on messages of a
// response whose id another one had before.
const ReusedID = "reused_id"

// Claims are the ids of a session and the streams that used them first.
//
// Formats whose ids are local (decoder.Info.LocalIDs) take them from servers that repeat
// them: Ollama draws a response id from 999 numbers, others use the Unix second, and call_0
// is the first call of every response of some. One exchange with such a server is one
// stream, so an id is unique together with its stream and with nothing less.
//
// The first stream that uses an id in a session keeps it as it is, so that a recording
// decoded elsewhere has the same ids. Another stream that uses the id means something else:
// its id gets a suffix that is a hash of the stream's name, which is the same after a
// restart and in a backfill.
//
// Which stream is the first is the same in each reading of a journal, whose streams have one lane. Files have several, and
// are read by their age: where two files of one session repeat an id (parts of one recording of MCP in which a
// request has the id and the arguments of another), another reading may leave the id to the other file. A
// file with a session of its own repeats none.
//
// A run is named after its prompt, because each exchange repeats it. The same prompt sent
// again, after it was answered or while it is still being answered, begins another run; a
// request that follows a failure is a retry and goes on with the run. An exchange that
// brings results of calls belongs to the run that made the newest of these calls.
//
// A summary is a response that was asked for by its id: it claims nothing, and keeps its ids.
type Claims struct {
	Responses table[uint64]    `json:"responses,omitzero"` // by response id: the stream
	Calls     table[[]madeBy]  `json:"calls,omitzero"`     // by call id, oldest first
	Runs      table[instance]  `json:"runs,omitzero"`      // by run: the newest instance
	Streams   table[*instance] `json:"streams,omitzero"`   // by stream, while it is open
}

// madeBy is the exchange that made a call.
type madeBy struct {
	Stream uint64 `json:"stream"`
	Run    string `json:"run"`              // the instance
	Call   string `json:"call,omitempty"`   // suffix of the call's id
	Key    string `json:"suffix,omitempty"` // of the message's key
}

// instance is one run of those that the decoder calls by the same name.
type instance struct {
	Run      string `json:"run"`
	Suffix   string `json:"suffix,omitempty"`
	Stream   uint64 `json:"stream"`             // that began it, or was the last to try
	Answered bool   `json:"answered,omitempty"` // of the newest of its name
	// Keys are the suffixes that message keys of the stream got, for messages that
	// name one of them as their parent.
	Keys map[string]string `json:"keys,omitempty"`
}

// table is a bounded map; it evicts the oldest entry first.
type table[V any] struct {
	Of    map[string]V `json:"of,omitempty"`
	Order []string     `json:"order,omitempty"`
}

func (t *table[V]) put(key string, v V) { t.putWithin(maxClaims, key, v) }

func (t *table[V]) putWithin(most int, key string, v V) {
	if _, known := t.Of[key]; !known {
		if t.Of == nil {
			t.Of = make(map[string]V)
		}
		if len(t.Order) >= most {
			delete(t.Of, t.Order[0])
			t.Order = slices.Delete(t.Order, 0, 1)
		}
		key = strings.Clone(key)
		t.Order = append(t.Order, key)
	}
	t.Of[key] = v
}

func (t *table[V]) drop(key string) {
	if _, known := t.Of[key]; known {
		delete(t.Of, key)
		t.Order = slices.DeleteFunc(t.Order, func(k string) bool { return k == key })
	}
}

// SuffixOf marks an id that another stream used first.
func SuffixOf(stream uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], stream)
	return "#" + hex.EncodeToString(b[:])
}

// Unclaimed is the name of a run without the suffix that Claim has added for the stream.
func Unclaimed(run string, stream uint64) string { return strings.TrimSuffix(run, SuffixOf(stream)) }

// InUse reports whether the session has claims.
func (c *Claims) InUse() bool { return len(c.Runs.Of) > 0 }

// Claim renames the ids of m that other streams of the session use for something else.
// It reports whether the message belongs to a response whose id was in use. begun reports whether a
// run is one of the stream already, which a stream of several runs that is decoded again begins
// once more.
func (c *Claims) Claim(m *msg.Message, stream uint64, begun func(run string, stream uint64) bool) (reused bool) {
	if m.Run == "" || m.Complete == msg.Summary {
		return false
	}
	in := c.join(m, stream, begun)
	suffix, parent := in.Suffix, in.Keys[m.ParentKey]
	m.Run += in.Suffix
	switch {
	case m.ResponseID != "":
		reused = c.response(m, in, stream, &suffix)
	case m.Kind == msg.ToolResult || m.Kind == msg.DelegationResult:
		if made := c.made(m.Tool.CallID, m.Run); made != nil {
			renameCall(m, made.Call)
			suffix, parent = made.Call+suffix, made.Key
		}
	}
	in.renamed(m.Key, suffix)
	m.Key += suffix
	if m.ParentKey != "" {
		m.ParentKey += parent
	}
	return reused
}

// renamed records the suffix of a message key of the stream.
func (in *instance) renamed(key, suffix string) {
	if suffix == "" || len(in.Keys) >= maxClaims {
		return
	}
	if in.Keys == nil {
		in.Keys = make(map[string]string)
	}
	in.Keys[strings.Clone(key)] = suffix
}

// response claims the ids of a part of a response, and sets the suffix of its key.
func (c *Claims) response(m *msg.Message, in *instance, stream uint64, suffix *string) (reused bool) {
	if owner, taken := c.Responses.Of[m.ResponseID]; !taken {
		c.Responses.put(m.ResponseID, stream)
	} else if owner != stream {
		m.SetAttr(ReusedID, m.ResponseID)
		m.ResponseID += SuffixOf(stream)
		*suffix, reused = SuffixOf(stream), true
	}
	if m.Kind == msg.ToolCall || m.Kind == msg.Delegation {
		id := m.Tool.CallID
		list := c.Calls.Of[id]
		at := slices.IndexFunc(list, func(b madeBy) bool { return b.Stream == stream })
		if at < 0 {
			by := madeBy{Stream: stream, Run: m.Run, Key: *suffix}
			if len(list) > 0 {
				by.Call = SuffixOf(stream)
				by.Key = by.Call
			}
			if len(list) >= maxExchanges {
				list = slices.Delete(list, 0, 1)
			}
			list = append(list, by)
			at = len(list) - 1
			c.Calls.put(id, list)
		}
		renameCall(m, list[at].Call)
		*suffix = list[at].Key
	}
	if last, ok := c.Runs.Of[in.Run]; ok && m.Kind != msg.Error && last.Suffix == in.Suffix {
		last.Answered = true
		c.Runs.put(in.Run, last)
	}
	return reused
}

// renameCall makes the id of m's call unique. People still see the protocol's id.
func renameCall(m *msg.Message, suffix string) {
	if suffix != "" {
		m.Tool.ProtocolID = m.Tool.ID()
		m.Tool.CallID += suffix
	}
}

// made returns the exchange that made the call of a result: the newest of the run, or the
// newest of all.
func (c *Claims) made(call, run string) *madeBy {
	list := c.Calls.Of[call]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Run == run {
			return &list[i]
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &list[len(list)-1]
}

// join finds the instance of the run that the stream belongs to.
func (c *Claims) join(m *msg.Message, stream uint64, begun func(string, uint64) bool) *instance {
	name := SuffixOf(stream)
	if in := c.Streams.Of[name]; in != nil && in.Run == m.Run {
		return in
	}
	in := &instance{Run: strings.Clone(m.Run), Stream: stream}
	last, known := c.Runs.Of[m.Run]
	begins := m.Kind == msg.System || m.Signal == msg.RunStart || m.ResponseID != ""
	switch {
	case !known:
	case begun(m.Run, stream):
		begins = false
	case begun(m.Run+name, stream):
		in.Suffix, begins = name, false
	case !begins:
		in.Suffix = last.Suffix
		if made := c.made(m.Tool.CallID, m.Run+last.Suffix); made != nil && m.Tool.CallID != "" && strings.HasPrefix(made.Run, m.Run) {
			in.Suffix = made.Run[len(m.Run):]
		}
	case last.Answered || c.Streams.Of[SuffixOf(last.Stream)] != nil:
		in.Suffix = name
	default: // a retry
		in.Suffix = last.Suffix
	}
	c.Streams.put(name, in)
	if !known || begins {
		c.Runs.put(in.Run, *in)
	}
	return in
}

// Close ends the claims of a stream on the runs that it is in.
func (c *Claims) Close(stream uint64) { c.Streams.drop(SuffixOf(stream)) }
