package sse

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// state is where a stream continues: the State of its recording.
type state struct {
	LastID string `json:"last_id,omitempty"`
	source.Position
	source.ResponseInfo // of the last connection
}

func (s *state) marshal() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // every field can be marshaled
	}
	return b
}

// key names the stream of a request, in this process and the next.
func (c *Client) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", c.Method, c.URL, c.Body)
	return "sse-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// request returns the next request of the stream.
func (c *Client) request(s *state) (*http.Request, error) {
	method, u, body := c.Method, *c.url, c.Body
	contentType := ""
	if c.resume != nil && s.Known() {
		var err error
		if method, body, contentType, err = c.resume.Request(&u, method, body, &s.Position); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequest(method, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == "" {
		r.Body, r.GetBody, r.ContentLength = http.NoBody, nil, 0
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Cache-Control", "no-cache")
	if body != "" && (strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[")) {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range c.Headers {
		if strings.EqualFold(k, "Host") {
			r.Host = v.Reveal()
		}
		r.Header.Set(k, v.Reveal())
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if c.Resume == LastEventID && s.LastID != "" {
		r.Header.Set("Last-Event-ID", s.LastID)
	}
	return r, nil
}

// isDone reports whether an event is the sentinel.
func isDone(f *frame.Frame) bool { return bytes.Equal(bytes.TrimSpace(f.Data), []byte("[DONE]")) }
