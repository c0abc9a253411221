package exchange

import (
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/msg"
)

// Unnamed names the calls of an API that has no ids for them: by the prompt before the call,
// the tool, and the number of calls of the conversation before it. A response and the requests
// that repeat it have the same names.
type Unnamed struct {
	Prompt string `json:",omitempty"` // hash of the last one
	Before int    `json:",omitempty"` // calls
}

// Next is the id of the next call.
func (u *Unnamed) Next(tool string) string {
	u.Before++
	return "call_" + msg.HashKey(u.Prompt, tool, strconv.Itoa(u.Before))
}

// History has the calls that a request repeats, so that a result, which may name the tool only,
// is matched to the oldest call of the tool that has no result.
type History struct {
	Unnamed
	open []repeated
}

type repeated struct{ id, asRepeated, tool string }

// Prompted sets the last prompt.
func (h *History) Prompted(text msg.Text) { h.Prompt = msg.HashKey(text.String()) }

// Called adds a call. id is that of the response, "" where the response had none;
// asRepeated is the id in the request, which may be the client's own.
func (h *History) Called(id, asRepeated, tool string) {
	if own := h.Next(tool); id == "" {
		id = own
	}
	h.open = append(h.open, repeated{id, asRepeated, tool})
}

// Result returns the id of the call of a result; "" where no call has it.
func (h *History) Result(asRepeated, tool string) string {
	i := slices.IndexFunc(h.open, func(c repeated) bool {
		if asRepeated != "" && c.asRepeated != "" {
			return c.asRepeated == asRepeated
		}
		return c.tool == tool || tool == ""
	})
	if i < 0 {
		return asRepeated
	}
	id := h.open[i].id
	h.open = slices.Delete(h.open, i, i+1)
	return id
}
