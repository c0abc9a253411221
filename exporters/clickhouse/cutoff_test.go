package clickhouse

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
)

// endsAt is a store on a Unix socket that ends in the middle of each answer, as a process that was killed.
func endsAt(t *testing.T, begin string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, begin)
		_ = c.Close()
	})}}
	s.Start()
	t.Cleanup(s.Close)
	return socket
}

// TestCutOff: a store that ends before an answer, in the middle of one, or before the question is distinct from one that refuses the
// statement, and a person reads which store it was and how to go on.
func TestCutOff(t *testing.T) {
	for name, begin := range map[string]string{
		"before the answer": "", "in its head": "HTTP/1.1 200 O", "behind its head": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			socket := endsAt(t, begin)
			c, err := Open(ConnSettings{DSN: "http+unix://reader@" + url.PathEscape(socket) + "/earshot"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var out strings.Builder
			_, queried := c.Query(t.Context(), "SELECT 1", nil)
			for what, err := range map[string]error{"query": queried, "format": c.Format(t.Context(), &out, "TSV", "SELECT 1", nil)} {
				if !c.CutOff(err) {
					t.Errorf("%s: not cut off: %v", what, err)
				} else if text := err.Error(); !strings.Contains(text, "the store at unix:"+socket+"/earshot ended") || !strings.Contains(text, "try again") || strings.Contains(text, "Post ") {
					t.Errorf("%s: %s", what, text)
				}
			}
		})
	}
	socket := filepath.Join(t.TempDir(), "none")
	c, err := Open(ConnSettings{DSN: "http+unix://reader@" + url.PathEscape(socket) + "/earshot"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Query(t.Context(), "SELECT 1", nil); !c.CutOff(err) || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("without a listener: %v", err)
	}
	for _, err := range []error{
		nil, context.Canceled, &url.Error{Op: "Post", Err: context.DeadlineExceeded}, &chgo.Exception{Code: 60}, errors.Join(&chgo.Exception{Code: 62}, io.ErrUnexpectedEOF),
		&chgo.HTTPError{StatusCode: http.StatusForbidden, Err: errors.New("no")},
	} {
		if c.CutOff(err) {
			t.Errorf("%v is taken for the end of a store", err)
		}
	}
	if !c.CutOff(&chgo.HTTPError{StatusCode: http.StatusBadGateway, Err: errors.New("The store does not answer")}) {
		t.Error("the answer of a proxy whose store has ended")
	}
}
