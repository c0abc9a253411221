package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/earshot-dev/earshot/core/export"
)

func TestClassify(t *testing.T) {
	exception := func(code int32, text string) error { return &chgo.Exception{Code: code, Message: text} }
	overHTTP := func(status int, err error) error { return &chgo.HTTPError{StatusCode: status, Err: err} }
	for _, c := range []struct {
		name      string
		err       error
		permanent bool
	}{
		{"cannot parse text", exception(6, ""), true},
		{"cannot parse quoted text", exception(26, ""), true},
		{"cannot parse input", exception(27, ""), true},
		{"cannot parse date", exception(38, ""), true},
		{"cannot parse time", exception(41, ""), true},
		{"type mismatch", exception(53, ""), true},
		{"cannot convert type", exception(70, ""), true},
		{"cannot parse number", exception(72, ""), true},
		{"incorrect data", exception(117, ""), true},
		{"array too large", exception(128, ""), true},
		{"string too large", exception(131, ""), true},
		{"out of range", exception(321, ""), true},
		{"null", exception(349, ""), true},
		{"decimal overflow", exception(407, ""), true},
		{"a constraint of the table", exception(469, ""), true},
		{"more partitions than a table may have", exception(252, "Too many parts (100001) in all partitions in total in table 'earshot.messages'. This indicates wrong choice of partition key. The threshold can be modified with 'max_parts_in_total' setting"), true},
		{"one insert, too many partitions", exception(252, "Too many partitions for single INSERT block (more than 100)"), true},
		{"the same over HTTP", overHTTP(500, exception(117, "")), true},
		{"wrapped", fmt.Errorf("insert: %w", exception(117, "")), true},
		{"a proxy's limit", overHTTP(http.StatusRequestEntityTooLarge, errors.New("body")), true},

		{"table with too many parts", exception(252, "Too many parts (3000)"), false},
		{"no such column", exception(16, ""), false},
		{"unknown table", exception(60, ""), false},
		{"unknown database", exception(81, ""), false},
		{"timeout", exception(159, ""), false},
		{"too many queries", exception(202, ""), false},
		{"socket timeout", exception(209, ""), false},
		{"network", exception(210, ""), false},
		{"memory", exception(241, ""), false},
		{"read-only", exception(242, ""), false},
		{"disk full", exception(243, ""), false},
		{"no quorum", exception(285, ""), false},
		{"aborted", exception(236, ""), false},
		{"killed", exception(394, ""), false},
		{"wrong password", exception(516, ""), false},
		{"no access", exception(497, ""), false},
		{"keeper", exception(999, ""), false},
		{"a code of tomorrow", exception(987654, ""), false},
		{"busy proxy", overHTTP(503, errors.New("body")), false},
		{"unauthorized", overHTTP(401, errors.New("body")), false},
		{"refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, false},
		{"cut", io.ErrUnexpectedEOF, false},
		{"late", context.DeadlineExceeded, false},
		{"schema", ErrSchema, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := &Conn{throttle: &throttle{}}
			got := conn.classify(t.Context(), c.err)
			if export.IsPermanent(got) != c.permanent || !errors.Is(got, c.err) {
				t.Errorf("permanent %v: %v, want %v of %v", export.IsPermanent(got), got, c.permanent, c.err)
			}
		})
	}
}

func TestACancelledInsertBlamesNobody(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	conn := &Conn{throttle: &throttle{}}
	got := conn.classify(ctx, &chgo.Exception{Code: 117})
	if export.IsPermanent(got) || !errors.Is(got, stopped) {
		t.Errorf("got %v", got)
	}
}

// TestUnansweredQueries: the error of a query has no address with parameters, and is a sentence where the store has no time.
func TestUnansweredQueries(t *testing.T) {
	conn := &Conn{redacted: "unix:store.sock/earshot"}
	post := func(err error) error {
		return fmt.Errorf("sendQuery: %w", &url.Error{Op: "Post", URL: "http://reader@localhost?param_now=1", Err: err})
	}
	if got, want := conn.refused(post(chgo.ErrAcquireConnTimeout)), "clickhouse: the store has not answered in time: it is busy, or is starting; try again in a moment"; got.Error() != want || !errors.Is(got, chgo.ErrAcquireConnTimeout) {
		t.Errorf("got %v, want %s", got, want)
	}
	if got := conn.refused(post(&chgo.Exception{Code: codeUnknownDatabase, Message: "Database earshot does not exist"})); got.Error() != "clickhouse: "+ErrNoTables.Error() || !SchemaDiffers(got) {
		t.Errorf("a first start: %v", got)
	}
	if got, want := conn.refused(post(io.EOF)), "clickhouse: query: the store at unix:store.sock/earshot ended, or was ended, before its answer was whole (unexpected EOF): try again in a moment"; got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestRetryAfter(t *testing.T) {
	conn := &Conn{throttle: &throttle{}}
	conn.throttle.wait.Store(int64(3 * time.Second))
	var after *export.RetryAfter
	if err := conn.classify(t.Context(), io.ErrUnexpectedEOF); !errors.As(err, &after) || after.Wait != 3*time.Second {
		t.Errorf("got %v", err)
	}
	if err := conn.classify(t.Context(), io.ErrUnexpectedEOF); errors.As(err, &after) {
		t.Errorf("the wait was given twice: %v", err)
	}
}

// TestErrorsNameTheServer: an insert that does not reach its server has the server's address in its error, and not each setting of the insert.
func TestErrorsNameTheServer(t *testing.T) {
	conn := &Conn{throttle: &throttle{}, redacted: "http://h/db"}
	err := conn.classify(t.Context(), fmt.Errorf("insert: %w", &url.Error{Op: "Post", URL: "http://h/?insert_deduplication_token=t", Err: io.ErrUnexpectedEOF}))
	if err == nil || err.Error() != `insert: Post "http://h/db": unexpected EOF` || !errors.Is(err, io.ErrUnexpectedEOF) || export.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
}
