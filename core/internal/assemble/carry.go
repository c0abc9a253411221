package assemble

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// maxCarried is how many results of a run wait for the next response's usage.
const maxCarried = 64

// A result stands in every later request of its run. How many tokens that is, nobody
// says; but a request is as long as the one before, what was answered to that, and what
// came since. So, for two responses of one model that follow each other:
//
//	input(next) - input(before) - output(before) = results in between, and whatever else came
//
// where input is all of it, cached or not, and output contains the reasoning, which goes
// back to the model as long as it calls tools. Several results share this by their size.
// A prompt or a note of the framework that comes with them counts with them, because
// nothing tells them apart. What does not add up, after a compaction or where usage is
// missing, is unknown.

// spent is how long a request was, and its answer.
type spent struct {
	Response int            `json:"response"` // the how manyth of its run
	Model    string         `json:"model,omitempty"`
	Input    uint64         `json:"input"`
	Output   uint64         `json:"output"`
	From     msg.Provenance `json:"from"`
}

// carried is a result that the next response has to read.
type carried struct {
	Told  told `json:"told"`
	After int  `json:"after"` // so many responses of the run had begun
}

// carry notes a result.
func (r *run) carry(t *told) {
	if len(r.Carried) >= maxCarried {
		r.Carried = slices.Delete(r.Carried, 0, 1)
	}
	r.Carried = append(r.Carried, carried{*t, r.Responses})
}

// responds notes that a response has begun, and forgets results that the one before it
// should have told of.
func (r *run) responds() int {
	r.Responses++
	r.Carried = slices.DeleteFunc(r.Carried, func(c carried) bool { return c.After < r.Responses-1 })
	return r.Responses
}

// measure takes the usage of a response and gives the results that came between it and
// the one before again, with their tokens.
func (g *group) measure(out Emitter, r *run, c *chat, u msg.Tokens) {
	before := r.Spent
	now := spent{Response: c.Nth, Model: c.Model, Input: u.Input + u.CacheRead + u.CacheWrite, Output: u.Output + u.Reasoning, From: u.Provenance}
	if c.Nth == 0 || c.Nth < before.Response {
		return
	}
	r.Spent = now
	if before.Response != now.Response-1 || before.Model != now.Model || before.Input == 0 || now.Input < before.Input+before.Output {
		return
	}
	from := min(before.From, now.From)
	if from == msg.NoProvenance {
		return
	}
	var bytes uint64
	var list []told
	r.Carried = slices.DeleteFunc(r.Carried, func(k carried) bool {
		if k.After != now.Response-1 {
			return false
		}
		bytes += uint64(k.Told.Result)
		list = append(list, k.Told)
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
		t.Tokens, t.From = uint32(share), from
		if d, ok := g.Done[t.Call.ID]; ok { // what became known of a delegation since
			if d.Told != nil {
				d.Told.Tokens, d.Told.From = t.Tokens, t.From
				t.Call = d.Told.Call
			}
			t.Call.Child, t.Call.Link, t.Call.Confidence = d.Child, d.Link, d.Confidence
		}
		s := g.toldSpan(t)
		s.Amends = true
		g.giveCall(out, s, r, &t.Call)
	}
}
