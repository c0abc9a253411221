package clickhouse

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
)

func TestContract(t *testing.T) {
	exporttest.Check(t, exporttest.Subject{
		New: func(t *testing.T, far *exporttest.Destination) export.Exporter {
			server := httptest.NewServer(&fakeServer{t: t, far: far, tokens: make(map[string][]string)})
			t.Cleanup(server.Close)
			x, err := New(t.Context(), Settings{Conn: ConnSettings{DSN: server.URL}, MaxInsertBytes: 10 << 10})
			if err != nil {
				t.Fatal(err)
			}
			x.ready = true // the server has no tables to look at
			return x
		},
		Takes:    takes,
		Replaces: true, // by FINAL; tokens have their own test
	})
}

// takes names the rows that each record becomes.
func takes(b *export.Batch) [][]string {
	var out [][]string
	for i := range b.Messages {
		out = append(out, []string{"messages/" + b.Messages[i].Host.ID.String()})
	}
	for i := range b.Spans {
		out = append(out, []string{fmt.Sprintf("spans/%s", b.Spans[i].ID[:])})
	}
	for i := range b.DeadLetters {
		out = append(out, []string{"dead_letters/" + b.DeadLetters[i].ID.String()})
	}
	for i := range b.Ledger {
		out = append(out, []string{"source_ledger/" + b.Ledger[i].Stream})
	}
	for i := range b.Streams {
		out = append(out, []string{"streams/" + b.Streams[i].Stream})
	}
	return out
}

// fakeServer is as much of ClickHouse's HTTP interface as an insert needs. Like
// the real one it drops an insert whose token it has seen.
type fakeServer struct {
	t      *testing.T
	far    *exporttest.Destination
	mu     sync.Mutex
	tokens map[string][]string
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	insert := query.Get("query")
	if insert == "" {
		f.hello(w, r)
		return
	}
	table := strings.Split(insert, "`")[3]
	records, err := f.read(table, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	exception := func(status, code int, text string) {
		w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(code))
		w.WriteHeader(status)
		fmt.Fprintf(w, "Code: %d. DB::Exception: %s\n", code, text)
	}
	switch answer := f.far.Answer(records); answer {
	case exporttest.Busy:
		w.Header().Set("Retry-After", "1")
		exception(http.StatusServiceUnavailable, 202, "Too many simultaneous queries. (TOO_MANY_SIMULTANEOUS_QUERIES)")
	case exporttest.Refused:
		exception(http.StatusInternalServerError, 117, "Not that one. (INCORRECT_DATA)")
	case exporttest.Hung:
		<-r.Context().Done()
	default:
		f.keep(query.Get("insert_deduplication_token"), records)
		if answer == exporttest.Lost {
			panic(http.ErrAbortHandler)
		}
	}
}

func (f *fakeServer) keep(token string, records []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, seen := f.tokens[token]; seen {
		if !slices.Equal(before, records) {
			f.t.Errorf("token %s came with other rows: they are lost", token)
		}
		return
	}
	batch, _, _ := strings.Cut(token, "-")
	for other, rows := range f.tokens {
		if strings.HasPrefix(other, batch+"-") && slices.Contains(rows, records[0]) {
			f.t.Errorf("%s came under the tokens %s and %s: it is there twice", records[0], other, token)
		}
	}
	f.tokens[token] = records
	f.far.Keep(records)
}

// idColumns are the columns that identify rows.
var idColumns = map[string]string{
	"messages": "message_id", "spans": "span_id",
	"dead_letters": "dl_id", "source_ledger": "stream", "streams": "stream",
}

// read takes the blocks of the body apart and names their rows.
func (f *fakeServer) read(table string, r *http.Request) ([]string, error) {
	in := chproto.NewReader(r.Body)
	var out []string
	for {
		block := proto.Block{ServerContext: &column.ServerContext{Timezone: time.UTC}}
		if err := block.Decode(in, 0); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		for _, c := range block.Columns {
			if c.Name() != idColumns[table] {
				continue
			}
			for i := range c.Rows() {
				out = append(out, fmt.Sprintf("%s/%s", table, c.Row(i, false)))
			}
		}
	}
}

// hello answers the query that the driver sends on a new connection.
func (f *fakeServer) hello(w http.ResponseWriter, r *http.Request) {
	sql, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasPrefix(string(sql), "SELECT displayName()") {
		http.Error(w, fmt.Sprintf("unexpected query %q: %v", sql, err), http.StatusInternalServerError)
		return
	}
	block := proto.NewBlock()
	for _, c := range [][2]string{{"displayName()", "String"}, {"version()", "String"}, {"revision()", "UInt32"}, {"timezone()", "String"}} {
		if err := block.AddColumn(c[0], column.Type(c[1])); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	const revision = 54460
	var buf chproto.Buffer
	if err := block.Append("fake", "26.7.1.1", uint32(revision), "UTC"); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if err := block.Encode(&buf, revision); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(buf.Buf)
}

// TestATimeoutMayPass has a server that does not answer.
func TestATimeoutMayPass(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("query") == "" {
			(&fakeServer{}).hello(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer server.Close()
	x, err := New(t.Context(), Settings{Conn: ConnSettings{DSN: server.URL}, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	x.ready = true
	err = x.Export(t.Context(), &export.Batch{ID: "x", Messages: exporttest.Records(sampleMessages(10)...)})
	if err == nil || export.IsPermanent(err) || !strings.Contains(err.Error(), "no answer in 200ms") {
		t.Errorf("error %v", err)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
