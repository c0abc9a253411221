package inspect

import (
	"strconv"
	"time"
)

// Hop is the time of a call that another program answered: until its request was on the wire, between the
// programs where both were recorded, in the server (else with the transport) until
// the answer was, and until the caller had it. A part is zero where it is not known.
type Hop struct {
	Session   string        `json:"session_id"` // of the recording
	Agent     string        `json:"agent,omitempty"`
	Link      string        `json:"link"`
	Queue     time.Duration `json:"queue_ns,omitempty"`
	Transport time.Duration `json:"transport_ns,omitempty"`
	Server    time.Duration `json:"server_ns,omitempty"`
	Return    time.Duration `json:"return_ns,omitempty"`
}

// seconds reads a number of seconds; 0 where there is none.
func seconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// text is the hop as one line.
func (h *Hop) text() string {
	s := "server and transport " + Span(h.Server)
	if h.Transport > 0 {
		s = "transport " + Span(h.Transport) + " · server " + Span(h.Server)
	}
	if h.Queue > 0 {
		s = "queue " + Span(h.Queue) + " · " + s
	}
	if h.Return > 0 {
		s += " · return " + Span(h.Return)
	}
	return s + " · linked by " + h.Link
}
