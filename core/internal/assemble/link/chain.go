package link

import "strings"

// ChainShards is the number of chains of a source, maxChained that of the responses of one: a change is stored with the
// whole chain.
const (
	ChainShards = 64
	maxChained  = 64
)

// Chain has the last responses of a source and where they were, because others are named by them: a request goes on from a
// response in place of a conversation, and a response is asked for again by its id. The order in which
// they came decides, which is the same in each reading of a journal. Of responses with one id the newest counts.
type Chain struct {
	Responses table[Seat] `json:"responses,omitzero"`
}

// Seat is where a response was.
type Seat struct {
	Session string `json:"session"`
	Run     string `json:"run"`
}

// At returns where a response was.
func (c *Chain) At(response string) (s Seat, ok bool) {
	if c != nil {
		s, ok = c.Responses.Of[response]
	}
	return s, ok
}

// Add adds a response, and reports whether that has changed anything.
func (c *Chain) Add(response string, s Seat) bool {
	if c.Responses.Of[response] == s {
		return false
	}
	c.Responses.putWithin(maxChained, response, Seat{strings.Clone(s.Session), strings.Clone(s.Run)})
	return true
}
