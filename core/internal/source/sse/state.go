package sse

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// state is where a stream goes on: the State of its recording.
type state struct {
	LastID  string `json:"last_id,omitempty"`
	Run     string `json:"run,omitempty"`
	Session string `json:"session,omitempty"`
	Index   *int64 `json:"index,omitempty"` // event_index or seq_id of the last event that had one

	source.ResponseInfo // of the last connection
}

func (s *state) marshal() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // there is nothing in it that cannot be
	}
	return b
}

// numbered is what the events of resumable runs carry.
type numbered struct {
	Run     string `json:"run_id"`
	Parent  string `json:"parent_run_id"`
	Session string `json:"session_id"`
	Index   *int64 `json:"event_index"`
	Seq     *int64 `json:"seq_id"`
}

// note takes note of an event.
func (s *state) note(resume string, f *frame.Frame) {
	if resume != AGNO && resume != Letta {
		return
	}
	var n numbered
	if json.Unmarshal(f.Data, &n) != nil {
		return // a sentinel, or nothing that could be resumed from
	}
	// A team's stream has the runs of its members in it; it is resumed as its own.
	if s.Run == "" && n.Parent == "" {
		s.Run = n.Run
	}
	if s.Session == "" {
		s.Session = n.Session
	}
	index := n.Index
	if resume == Letta {
		index = n.Seq
	}
	if index != nil && (s.Index == nil || *index > *s.Index) {
		s.Index = index
	}
}

// key names the stream of a request, in this process and the next.
func (c *Client) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", c.Method, c.URL, c.Body)
	return "sse-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// request is the next request of the stream.
func (c *Client) request(s *state) (*http.Request, error) {
	method, u, body := c.Method, *c.url, c.Body
	contentType := ""
	switch {
	case c.Resume == AGNO && s.resumable():
		method, body, contentType = http.MethodPost, "", "application/x-www-form-urlencoded"
		form := url.Values{"last_event_index": {strconv.FormatInt(*s.Index, 10)}}
		if s.Session != "" {
			form.Set("session_id", s.Session)
		}
		body = form.Encode()
		if !strings.HasSuffix(u.Path, "/resume") {
			under(&u, "/runs", "/runs/"+url.PathEscape(s.Run)+"/resume")
		}
	case c.Resume == Letta && s.resumable():
		if parts := strings.Split(strings.TrimSuffix(u.Path, "/"), "/"); len(parts) < 3 || parts[len(parts)-3] != "runs" {
			method, body = http.MethodPost, ""
			under(&u, "/v1", "/v1/runs/"+url.PathEscape(s.Run)+"/stream")
		}
		if method == http.MethodGet {
			q := u.Query()
			q.Set("starting_after", strconv.FormatInt(*s.Index, 10))
			u.RawQuery = q.Encode()
			break
		}
		contentType = "application/json"
		var err error
		if body, err = withField(body, "starting_after", *s.Index); err != nil {
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

func (s *state) resumable() bool { return s.Run != "" && s.Index != nil }

// under replaces what follows the part of a path.
func under(u *url.URL, part, by string) {
	path, _, found := strings.Cut(u.EscapedPath(), part)
	if !found {
		path = ""
	}
	u.RawPath = path + by
	if p, err := url.PathUnescape(u.RawPath); err == nil {
		u.Path = p
	}
	u.RawQuery = ""
}

// withField sets a field of a JSON object.
func withField(body, field string, value int64) (string, error) {
	object := make(map[string]json.RawMessage)
	if body != "" {
		if err := json.Unmarshal([]byte(body), &object); err != nil {
			return "", fmt.Errorf("body: letta is resumed with a JSON object: %w", err)
		}
	}
	object[field] = json.RawMessage(strconv.FormatInt(value, 10))
	b, err := json.Marshal(object)
	return string(b), err
}

// isDone reports whether an event is the sentinel.
func isDone(f *frame.Frame) bool { return bytes.Equal(bytes.TrimSpace(f.Data), []byte("[DONE]")) }
