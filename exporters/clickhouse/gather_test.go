package clickhouse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	chblock "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestGatheredIsStoredTheSame compares the tables of batches that were gathered, of others
// that were taken back and exported as rows, and of those that were exported one by one. The
// gathered ones are one part in each table.
func TestGatheredIsStoredTheSame(t *testing.T) {
	batches := func() (out []*export.Batch) {
		for i := range 4 {
			b := fullBatch(fmt.Sprint("b", i), 60)
			for k := range b.Messages {
				b.Messages[k].Host.Ver += uint64(i)
			}
			out = append(out, b)
		}
		return out
	}
	x, c := exporter(t, nil)
	for _, b := range batches() {
		export1(t, x, b)
	}
	want := visible(t, c)

	for _, name := range []string{"gathered", "and the last not", "stored meanwhile", "taken back"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			x, c := exporter(t, func(s *Settings) { s.TempDir = dir })
			before := lastPart(t, c)
			all := batches()
			stored := make(chan error, 1)
			for i, b := range all[:3] {
				if !x.Gather(b) {
					t.Fatal("a batch is not gathered")
				}
				if name == "stored meanwhile" && i == 0 {
					store := x.Part()
					go func() { stored <- store(t.Context()) }()
				}
				clear(b.Messages) // the batch is not kept
				clear(b.Spans)
			}
			if name == "stored meanwhile" {
				if err := <-stored; err != nil {
					t.Error(err)
				}
			} else if got := count(t, c, "SELECT count() FROM messages"); got != "0" {
				t.Errorf("%s rows before the export", got)
			}
			switch name {
			case "and the last not":
				export1(t, x, all[3])
				part1(t, x)
			case "taken back":
				var taken []*export.Batch
				if err := x.Ungather(func(b *export.Batch) error { taken = append(taken, b); return nil }); err != nil {
					t.Fatal(err)
				}
				for _, b := range append(taken, all[3]) {
					for range 2 {
						export1(t, x, b)
					}
				}
			default:
				if !x.Gather(all[3]) {
					t.Fatal("a batch is not gathered")
				}
				part1(t, x)
			}
			if got := visible(t, c); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if name == "taken back" {
				return
			}
			if got := count(t, c, "SELECT countIf(level = 0) FROM system.parts WHERE database = currentDatabase() AND table = 'messages' AND min_block_number > "+before); got != map[bool]string{true: "1", false: "2"}[name == "gathered"] {
				t.Errorf("%s inserts", got)
			}
			export1(t, x, &export.Batch{})
			part1(t, x)
			if got := visible(t, c); got != want {
				t.Error("an empty export changed something")
			}
		})
	}
}

// TestGatheredRowIsRefused has a server that refuses one row of those that were gathered: the row is found among those that
// are taken back.
func TestGatheredRowIsRefused(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.TempDir = t.TempDir() })
	b := &export.Batch{ID: "b", Messages: exporttest.Records(sampleMessages(3000)...)}
	bad := b.Messages[1234].Host.ID.String()
	if err := x.conn.Exec(t.Context(), "ALTER TABLE "+x.schema.name("messages")+" ADD CONSTRAINT good CHECK message_id != unhex('"+bad+"') AND message_id != '"+bad+"'"); err != nil {
		t.Fatal(err)
	}
	if !x.Gather(b) {
		t.Fatal("a batch is not gathered")
	}
	if err := x.Part()(t.Context()); err == nil {
		t.Fatal("it is stored")
	}
	var work []*export.Batch
	if err := x.Ungather(func(b *export.Batch) error { work = append(work, b); return nil }); err != nil {
		t.Fatal(err)
	}
	var refused []export.Rows
	for len(work) > 0 {
		b := work[0]
		work = work[1:]
		err := x.Export(t.Context(), b)
		if err == nil {
			continue
		}
		if !export.IsPermanent(err) {
			t.Fatal(err)
		}
		halves, ok := [2]*export.Batch{}, false
		if b.Len() > 1 {
			halves, ok = b.Halves(), true
		} else {
			halves, ok = x.Split(b)
		}
		if !ok {
			refused = append(refused, b.Rows...)
			continue
		}
		work = append(work, halves[:]...)
	}
	if len(refused) != 1 || refused[0].Count != 1 || refused[0].Table != "messages" || !strings.Contains(refused[0].Shown, "message_id") {
		t.Fatalf("refused: %d, %.300v", len(refused), refused)
	}
	if got := count(t, c, "SELECT uniqExact(message_id) FROM messages"); got != "2999" {
		t.Errorf("%s messages are stored", got)
	}
}

// TestGatherHasLimits: a batch whose partitions would be too many for one insert, and one behind
// the size of an insert, are not gathered, and nothing of them is.
func TestGatherHasLimits(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.TempDir, s.MaxInsertBytes = t.TempDir(), 4<<20 })
	spans := func(id string, from, days int) *export.Batch {
		b := &export.Batch{ID: id}
		for i := range days {
			s := sampleSpan()
			s.Start += int64(from+i) * 86_400e9
			s.End = s.Start + 1
			s.ID[0], s.ID[1] = byte(from+i), byte((from+i)>>8)
			b.Spans = append(b.Spans, new(s))
		}
		return b
	}
	if !x.Gather(spans("a", 0, 60)) || x.Gather(spans("b", 60, 60)) || !x.Gather(spans("c", 30, 60)) {
		t.Error("90 partitions are not the limit")
	}
	part1(t, x)
	export1(t, x, spans("d", 200, 40))
	if got := count(t, c, "SELECT uniqExact(SpanId) FROM otel_traces"); got != "130" {
		t.Errorf("%s spans", got)
	}
	n := 0
	for ; n < 100 && x.Gather(&export.Batch{ID: fmt.Sprint(n), Messages: exporttest.Records(sampleMessages(2000)...)}); n++ {
	}
	if n == 0 || n == 100 {
		t.Errorf("%d batches are gathered", n)
	}
	part1(t, x)
}

// TestFailedStoreKeepsWhatWasGathered has a server that refuses the inserts of a table: a store goes on where it stopped, an export and batches that are gathered
// meanwhile are none of it, and all are taken back in order.
func TestFailedStoreKeepsWhatWasGathered(t *testing.T) {
	x, server := inserting(t, Settings{TempDir: t.TempDir(), ConversationsEvery: time.Hour})
	batch := func(id string, messages int) *export.Batch {
		return &export.Batch{ID: id, Messages: exporttest.Records(sampleMessages(messages)...), DeadLetters: []msg.DeadLetter{{ID: msg.ID{1}, Tenant: "default", Ver: 1}}}
	}
	x.forgetTables()
	if x.Gather(batch("early", 1)) {
		t.Error("a batch is gathered though the tables are not there")
	}
	x.ready = true
	x.unready.Store(false)
	gather := func(b *export.Batch) {
		t.Helper()
		if !x.Gather(b) {
			t.Fatal("it is not gathered")
		}
	}
	stores := func(name, refuse string, store func(context.Context) error, want ...string) {
		t.Helper()
		server.refuses = refuse
		if err := store(t.Context()); (err != nil) != (refuse != "") || export.IsPermanent(err) {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, server.stored()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	exports := func(name string, b *export.Batch, refuse string, want ...string) {
		t.Helper()
		stores(name, refuse, func(ctx context.Context) error { return x.Export(ctx, b) }, want...)
	}
	gather(batch("a", 10))
	gather(batch("b", 20))
	store := x.Part()
	stores("refused", "dead_letters", store, "messages 30")
	gather(batch("c", 5))
	stores("refused again", "dead_letters", store)
	exports("another batch", batch("z", 1), "", "messages 1", "dead_letters 1")
	stores("at last", "", store, "dead_letters 2")
	stores("none is left", "", store)
	stores("gathered meanwhile", "", x.Part(), "messages 5", "dead_letters 1")

	gather(batch("d", 10))
	gather(batch("e", 20))
	store = x.Part()
	stores("refused", "dead_letters", store, "messages 30")
	gather(batch("f", 5))
	taken := make(map[string]*export.Batch)
	var ids []string
	full := errors.New("full")
	take := func(most int) error {
		return x.Ungather(func(b *export.Batch) error {
			if len(taken) == most {
				return full
			}
			taken[b.ID], ids = b, append(ids, b.ID)
			return nil
		})
	}
	if err := take(1); !errors.Is(err, full) {
		t.Errorf("taken back: %v", err)
	}
	stores("without what is taken back", "dead_letters", store, "messages 20")
	if err := take(3); err != nil {
		t.Errorf("taken back: %v", err)
	}
	if !slices.Equal(ids, []string{"dg", "eg", "fg"}) {
		t.Errorf("taken back: %q", ids)
	}
	for id, want := range map[string]int{"dg": 10, "eg": 20, "fg": 5} {
		if b := taken[id]; len(b.Rows) != 2 || b.Rows[0].Table != "messages" || b.Rows[0].Count != want || b.Rows[1].Table != "dead_letters" || b.Rowed() != want+1 {
			t.Errorf("taken back: %s, %d rows", b.ID, b.Rowed())
		}
	}
	exports("that was taken back", taken["eg"], "dead_letters", "messages 20")
	exports("the same again", taken["eg"], "", "dead_letters 1")
	exports("behind it", &export.Batch{ID: "g", Messages: exporttest.Records(sampleMessages(1)...)}, "", "messages 1")
	if err := x.Export(t.Context(), &export.Batch{ID: "h", Rows: []export.Rows{{Table: "of_before", Count: 1}}}); !export.IsPermanent(err) {
		t.Errorf("rows of a table that is not written any more: %v", err)
	}
	for _, g := range []*gathered{&x.gathered, &x.parted} {
		if info, err := g.file.(*os.File).Stat(); err != nil || info.Size() != 0 {
			t.Errorf("the file has %d bytes, error %v", info.Size(), err)
		}
	}
}

// TestEachStoreIsNoted: conversations are derived behind the store of gathered rows from its first attempt on, by the properties of their messages and
// not of those that are gathered meanwhile.
func TestEachStoreIsNoted(t *testing.T) {
	x, server := inserting(t, Settings{TempDir: t.TempDir(), ConversationsEvery: time.Hour})
	gather := func(id, title string) {
		t.Helper()
		list := sampleMessages(1)
		list[0].Title, list[0].Client, list[0].Attrs = title, msg.Client{}, nil
		if !x.Gather(&export.Batch{ID: id, Messages: exporttest.Records(list...)}) {
			t.Fatal("it is not gathered")
		}
	}
	derived := func(name string, since time.Time, want derivable) {
		t.Helper()
		if at, have := x.underived.take(); at.IsZero() != since.IsZero() || at.Before(since) || have != want {
			t.Errorf("%s: %+v is derived since %s", name, have, at)
		}
	}
	began := time.Now()
	gather("a", "Tides")
	store := x.Part()
	gather("b", "")
	server.refuses = "messages"
	if store(t.Context()) == nil {
		t.Error("it is stored")
	}
	derived("refused", time.Time{}, derivable{})
	tried := time.Now()
	server.refuses = ""
	if err := store(t.Context()); err != nil {
		t.Error(err)
	}
	if at := x.underived.since; at.After(tried) {
		t.Errorf("the attempt began at %s, not before %s", at, tried)
	}
	derived("stored", began, derivable{fact: true})
	part1(t, x)
	derived("the others", tried, derivable{})

	gather("c", "Tides")
	store = x.Part()
	server.refuses = "messages"
	if store(t.Context()) == nil {
		t.Error("it is stored")
	}
	tried = time.Now()
	if err := x.Ungather(func(*export.Batch) error { return nil }); err != nil {
		t.Error(err)
	}
	server.refuses = ""
	export1(t, x, &export.Batch{ID: "d", Messages: exporttest.Records(sampleMessages(1)...)})
	if at := x.underived.since; at.IsZero() || at.After(tried) {
		t.Errorf("rows that were taken back may be stored since %s, not before %s", at, tried)
	}
}

// inserts is a server that answers inserts, and refuses those into a table.
type inserts struct {
	mu      sync.Mutex
	refuses string
	code    int // of the refusal; 0: it is busy
	asked   []url.Values
	writer  string // the header of a program that stores rows
	other   []string
	got     []string
}

// inserting returns an exporter into such a server.
func inserting(t *testing.T, s Settings) (*Exporter, *inserts) {
	t.Helper()
	in, fake := &inserts{}, &fakeServer{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		insert := r.URL.Query().Get("query")
		if insert == "" {
			body, err := io.ReadAll(r.Body)
			if r.Body = io.NopCloser(bytes.NewReader(body)); err != nil || !strings.Contains(string(body), "displayName()") {
				in.mu.Lock()
				in.other = append(in.other, string(body))
				in.mu.Unlock()
			}
			fake.hello(w, r)
			return
		}
		table := strings.Split(insert, "`")[3]
		rows, err := fake.read(table, r)
		in.mu.Lock()
		defer in.mu.Unlock()
		in.asked, in.writer = append(in.asked, r.URL.Query()), r.Header.Get("X-Earshot-Writer")
		if err != nil || table == in.refuses {
			if in.code != 0 {
				w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(in.code))
				http.Error(w, fmt.Sprintf("Code: %d. DB::Exception: Not now", in.code), http.StatusInternalServerError)
				return
			}
			http.Error(w, fmt.Sprint("not now ", err), http.StatusServiceUnavailable)
			return
		}
		in.got = append(in.got, fmt.Sprint(table, " ", len(rows)))
	}))
	t.Cleanup(server.Close)
	s.Conn.DSN, s.Logger = server.URL, slog.New(slog.DiscardHandler)
	x, err := New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	x.ready = true
	t.Cleanup(func() {
		x.parted.close()
		x.gathered.close()
		if err := x.conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return x, in
}

// stored returns the rows of each insert since the last time.
func (in *inserts) stored() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := in.got
	in.got = nil
	return out
}

// TestWhatAnExportLeaves: which work the rows of a batch cause behind their insert, and a failure does not.
func TestWhatAnExportLeaves(t *testing.T) {
	letters := []msg.DeadLetter{{ID: msg.ID{1}, Tenant: "default", Ver: 1}}
	titled := sampleMessages(1)
	titled[0].Title, titled[0].Client, titled[0].Attrs = "Tides", msg.Client{}, nil
	for _, c := range []struct {
		name     string
		batch    export.Batch
		gathered bool
		refuses  string
		code     int
		fresh    bool
		ready    bool
		stored   []string
	}{
		{"messages", export.Batch{Messages: exporttest.Records(sampleMessages(2)...)}, false, "", 0, true, true, []string{"messages 2"}},
		{"as many spans", export.Batch{Messages: exporttest.Records(sampleMessages(1)...), Spans: exporttest.Records(sampleSpan())}, false, "", 0, true, true, []string{"messages 1", "spans 1"}},
		{"spans", export.Batch{Spans: exporttest.Records(sampleSpan())}, false, "", 0, true, true, []string{"spans 1"}},
		{"dead letters", export.Batch{DeadLetters: letters}, false, "", 0, false, true, []string{"dead_letters 1"}},
		{"nothing", export.Batch{}, false, "", 0, false, true, nil},
		{"messages with a title", export.Batch{Messages: exporttest.Records(titled...)}, false, "", 0, true, true, []string{"messages 1"}},
		{"gathered ones", export.Batch{Messages: exporttest.Records(titled...)}, true, "", 0, true, true, []string{"messages 1"}},
		{"gathered ones that are refused", export.Batch{Messages: exporttest.Records(titled...)}, true, "messages", 0, false, true, nil},
		{"a busy server", export.Batch{Messages: exporttest.Records(sampleMessages(2)...)}, false, "messages", 0, false, true, nil},
		{"a table that is gone", export.Batch{Messages: exporttest.Records(sampleMessages(2)...)}, false, "messages", 60, false, false, nil},
		{"dead letters that are refused", export.Batch{Messages: exporttest.Records(sampleMessages(2)...), DeadLetters: letters}, false, "dead_letters", 117, false, true, []string{"messages 2"}},
	} {
		x, server := inserting(t, Settings{TempDir: t.TempDir(), ConversationsEvery: time.Hour})
		server.refuses, server.code = c.refuses, c.code
		b := &c.batch
		b.ID = "b"
		before, store, attempt := time.Now(), func(ctx context.Context) error { return x.Export(ctx, b) }, &x.attempt
		if c.gathered {
			if !x.Gather(b) {
				t.Errorf("%s: not gathered", c.name)
			}
			store, attempt = x.Part(), &x.parted.attempt
		}
		err := store(t.Context())
		if (err != nil) != (c.refuses != "") || export.IsPermanent(err) != (c.code == 117) || err != nil && strings.Contains(err.Error(), "no answer") {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := server.stored(); !slices.Equal(got, c.stored) {
			t.Errorf("%s: %q, want %q", c.name, got, c.stored)
		}
		_, some := x.keeper.stored.left()
		x.keeper.stored.known = true
		if since, _ := x.keeper.stored.left(); some != c.fresh || some && since.Before(before) || x.alerting.spent.Load() != c.fresh || x.keeper.grown.Load() != c.fresh {
			t.Errorf("%s: rows are noted since %s: %t", c.name, since, some)
		}
		if derives, have := x.underived.take(); derives.IsZero() == c.fresh || c.fresh && len(c.batch.Messages) == 1 && c.batch.Messages[0].Title != "" && have != (derivable{fact: true}) {
			t.Errorf("%s: %+v is derived since %s", c.name, have, derives)
		}
		if x.isReady() != c.ready {
			t.Errorf("%s: the tables are known: %t", c.name, x.ready)
		}
		if lost := !attempt.began.IsZero(); lost != (c.refuses != "") {
			t.Errorf("%s: an insert may be of rows that are noted later: %t", c.name, lost)
		}
		if c.stored != nil && server.writer != "1" {
			t.Errorf("%s: the store is not told that rows come: %q", c.name, server.writer)
		}
		if c.refuses != "dead_letters" {
			continue
		}
		server.refuses = ""
		if err := x.Export(t.Context(), b); err != nil {
			t.Error(err)
		}
		if got := server.stored(); !slices.Equal(got, []string{"dead_letters 1"}) {
			t.Errorf("offered again: %q", got)
		}
		again := *b
		again.ID = "another"
		if err := x.Export(t.Context(), &again); err != nil {
			t.Error(err)
		}
		if got := server.stored(); len(got) != 2 {
			t.Errorf("another batch: %q", got)
		}
	}
}

// TestCloseBehindALostAnswer: rows whose insert may have been stored are derived when the exporter ends, and the file of those that were
// gathered is closed.
func TestCloseBehindALostAnswer(t *testing.T) {
	for _, lost := range []bool{true, false} {
		x, server := inserting(t, Settings{TempDir: t.TempDir(), ConversationsEvery: time.Hour})
		server.refuses = "messages"
		if !x.Gather(&export.Batch{ID: "a", DeadLetters: []msg.DeadLetter{{ID: msg.ID{1}}}}) {
			t.Fatal("it is not gathered")
		}
		var log bytes.Buffer
		x.settings.Logger = slog.New(slog.NewTextHandler(&log, nil))
		file := &disk{rowsFile: x.gathered.file, room: 1 << 20}
		x.gathered.file = file
		if lost {
			if err := x.Export(t.Context(), &export.Batch{ID: "b", Messages: exporttest.Records(sampleMessages(1)...)}); err == nil {
				t.Error("it was stored")
			}
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if derived := len(server.other) > 0; derived != lost || !file.closed {
			t.Errorf("an answer was lost: %t, derived: %t, closed: %t", lost, derived, file.closed)
		}
		if said := strings.Count(log.String(), "until the next start"); said != map[bool]int{true: 2}[lost] { // that server derives nothing
			t.Errorf("an answer was lost: %t, said %s", lost, &log)
		}
		x.gathered.file = nil
	}
}

// disk is a file on a disk that may be full.
type disk struct {
	rowsFile
	room   int64
	closed bool
}

func (d *disk) WriteAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > d.room {
		return 0, errors.New("no space left")
	}
	return d.rowsFile.WriteAt(p, at)
}

func (d *disk) Close() error {
	d.closed = true
	return d.rowsFile.Close()
}

// TestFullDisk: of a batch for which there is no room in the middle, nothing is gathered; the batches before it are stored, and where nothing
// can be the rows are sent at once.
func TestFullDisk(t *testing.T) {
	x, server := inserting(t, Settings{TempDir: t.TempDir(), ConversationsEvery: time.Hour})
	b := func(id string) *export.Batch {
		return &export.Batch{ID: id, Messages: exporttest.Records(sampleMessages(10)...), DeadLetters: []msg.DeadLetter{{ID: msg.ID{1}, Payload: make([]byte, 1<<16)}}}
	}
	if !x.Gather(b("a")) {
		t.Fatal("it is not gathered")
	}
	file := x.gathered.file
	x.gathered.file = &disk{rowsFile: file, room: x.gathered.size + 1<<16}
	if x.Gather(b("b")) {
		t.Error("it is gathered on a full disk")
	}
	part1(t, x)
	export1(t, x, b("c"))
	if got, want := server.stored(), []string{"messages 10", "dead_letters 1", "messages 10", "dead_letters 1"}; !slices.Equal(got, want) {
		t.Errorf("stored %q, want %q", got, want)
	}
	x.gathered.file = &disk{rowsFile: file}
	if x.Gather(b("d")) || !x.gathered.empty() {
		t.Error("it is gathered without any room")
	}
	x.gathered.file = file
	none, server := inserting(t, Settings{TempDir: "/proc/none", ConversationsEvery: time.Hour})
	if none.Gather(b("e")) {
		t.Error("it is gathered in no directory")
	}
	export1(t, none, b("e"))
	if got := server.stored(); len(got) != 2 {
		t.Errorf("stored %q", got)
	}
	without, _ := inserting(t, Settings{ConversationsEvery: time.Hour})
	if without.Gather(b("f")) || x.Gather(&export.Batch{ID: "g", Rows: make([]export.Rows, 1)}) {
		t.Error("it is gathered without a directory, or twice")
	}
}

// TestRowsAreSplit: gathered rows that are refused are halved down to one, which is shown.
func TestRowsAreSplit(t *testing.T) {
	x, _ := inserting(t, Settings{TempDir: t.TempDir()})
	if !x.Gather(&export.Batch{ID: "b", Messages: exporttest.Records(sampleMessages(3)...)}) {
		t.Fatal("it is not gathered")
	}
	var all *export.Batch
	if err := x.Ungather(func(b *export.Batch) error { all = b; return nil }); err != nil {
		t.Fatal(err)
	}
	ids := func(b *export.Batch) (out []string) {
		t.Helper()
		in := chblock.Block{ServerContext: &column.ServerContext{}}
		if err := in.Decode(proto.NewReader(bytes.NewReader(b.Rows[0].Data)), 0); err != nil {
			t.Fatal(err)
		}
		for _, c := range in.Columns {
			if c.Name() == "message_id" {
				for i := range c.Rows() {
					out = append(out, fmt.Sprint(c.Row(i, false)))
				}
			}
		}
		return out
	}
	want := ids(all)
	halves, ok := x.Split(all)
	if !ok || len(want) != 3 || !slices.Equal(ids(halves[0]), want[:1]) || !slices.Equal(ids(halves[1]), want[1:]) {
		t.Fatalf("halves of %q: %t", want, ok)
	}
	if a, b := halves[0].Rows[0], halves[1].Rows[0]; halves[0].ID != "bg0" || halves[1].ID != "bg1" || a.Count != 1 || b.Count != 2 || a.Table != "messages" {
		t.Errorf("%s with %d, %s with %d", halves[0].ID, a.Count, halves[1].ID, b.Count)
	}
	var shown map[string]any
	if err := json.Unmarshal([]byte(halves[0].Rows[0].Shown), &shown); err != nil || shown["message_id"] != want[0] || halves[1].Rows[0].Shown != "" {
		t.Errorf("shown %s, %v", halves[0].Rows[0].Shown, err)
	}
	if quarters, ok := x.Split(halves[1]); !ok || !slices.Equal(ids(quarters[1]), want[2:]) {
		t.Error("two rows are not split")
	}
	broken := export.Rows{Table: "messages", Count: 2, Data: all.Rows[0].Data[:40]}
	for name, list := range map[string][]export.Rows{"one": halves[0].Rows, "none": nil, "two tables": {all.Rows[0], all.Rows[0]}, "what cannot be read": {broken}} {
		if _, ok := x.Split(&export.Batch{Rows: list}); ok {
			t.Errorf("%s is split", name)
		}
	}
}

// TestSettingsOfAnInsert: a large insert makes one part with its indexes, but for that of texts where the day gets it later.
func TestSettingsOfAnInsert(t *testing.T) {
	for _, c := range []struct {
		size        int64
		days        bool
		skip, least string
		exclude     string
	}{
		{0, true, "0", "", ""}, {largeInsert - 1, true, "0", "", ""},
		{largeInsert, true, "1", fmt.Sprint(2 * largeInsert), textIndex}, {largeInsert + 1, false, "1", fmt.Sprint(2*largeInsert + 2), ""},
	} {
		x, server := inserting(t, Settings{CreateSchema: true})
		x.conn.embedded = c.days
		sent := false
		if err := x.inserts.insert(t.Context(), insertion{table: &x.writers.messages.table, size: c.size, token: "t", next: func(to *proto.Buffer) error {
			if sent {
				return io.EOF
			}
			sent = true
			return x.writers.messages.block.Encode(to)
		}}); err != nil {
			t.Fatal(err)
		}
		q := server.asked[0]
		if q.Get("materialize_skip_indexes_on_insert") != c.skip || q.Get("min_insert_block_size_bytes") != c.least || q.Get("exclude_materialize_skip_indexes_on_insert") != c.exclude || q.Get("insert_deduplication_token") != "t" {
			t.Errorf("%d bytes: %v", c.size, q)
		}
	}
}

// TestLongerInserts: an insert of many bytes may take longer, and so may its rows to be visible.
func TestLongerInserts(t *testing.T) {
	s := Settings{Timeout: 2 * time.Minute, MaxInsertBytes: 64 << 20}
	for size, want := range map[int64]time.Duration{0: 2 * time.Minute, 32<<20 - 1: 2 * time.Minute, 64 << 20: 6 * time.Minute} {
		if got := s.longest(size); got != want {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
	}
	if got := s.settle(); got != s.longest(128<<20) || got != 10*time.Minute {
		t.Errorf("rows are visible behind %s", got)
	}
	if s.Timeout = time.Second; s.settle() != 5*time.Minute {
		t.Errorf("rows are visible behind %s", s.settle())
	}
}
