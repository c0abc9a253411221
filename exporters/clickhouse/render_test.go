package clickhouse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"
)

// written answers every statement with a result.
type written struct {
	scripted
	result  *listed
	answer  io.Reader // of the server's own writing
	closing error
}

func (w *written) Query(context.Context, string, ...any) (driver.Rows, error) { return w.result, nil }

func answerOf(n int) *listed {
	l := &listed{columns: []driver.ColumnType{
		kind{name: "n", kind: "UInt64", scan: reflect.TypeFor[uint64]()}, kind{name: "größe\t", kind: "String", scan: reflect.TypeFor[string]()}, kind{name: "some", kind: "Nullable(String)", scan: reflect.TypeFor[*string]()},
		kind{name: "day", kind: "Nullable(Date)", scan: reflect.TypeFor[*time.Time]()},
	}}
	some, at := "ja, \"so\"", time.Date(2026, 3, 1, 10, 20, 30, 0, time.UTC)
	for i := range n {
		row := []any{uint64(i), "weit —\n\\", &some, &at}
		if i%2 == 1 {
			row[1], row[2], row[3] = "", nil, nil
		}
		l.rows = append(l.rows, row)
	}
	return l
}

// TestFormatsAreWritten: the text of each format for values, NULLs, names, and no rows, over the native protocol.
func TestFormatsAreWritten(t *testing.T) {
	for _, c := range []struct{ format, some, none string }{
		{"TabSeparated", "0\tweit —\\n\\\\\tja, \"so\"\t2026-03-01\n1\t\t\\N\t\\N\n", ""},
		{"tsv", "0\tweit —\\n\\\\\tja, \"so\"\t2026-03-01\n1\t\t\\N\t\\N\n", ""},
		{"TabSeparatedWithNames", "n\tgröße\\t\tsome\tday\n0\tweit —\\n\\\\\tja, \"so\"\t2026-03-01\n1\t\t\\N\t\\N\n", "n\tgröße\\t\tsome\tday\n"},
		{"CSV", "0,\"weit —\n\\\",\"ja, \"\"so\"\"\",2026-03-01\n1,,\\N,\\N\n", ""},
		{"CSVWithNames", "n,größe\t,some,day\n0,\"weit —\n\\\",\"ja, \"\"so\"\"\",2026-03-01\n1,,\\N,\\N\n", "n,größe\t,some,day\n"},
		{"JSONEachRow", `{"n":0,"größe\t":"weit —\n\\","some":"ja, \"so\"","day":"2026-03-01"}` + "\n" + `{"n":1,"größe\t":"","some":null,"day":null}` + "\n", ""},
		{"Vertical", "Row 1:\nn:      0\ngröße\t: weit —\n\\\nsome:   ja, \"so\"\nday:    2026-03-01\n\nRow 2:\nn:      1\ngröße\t: \nsome:   NULL\nday:    NULL\n\n", ""},
		{"Pretty", " n  größe\t    some      day        \n───────────────────────────────────\n 0  weit —\n\\  ja, \"so\"  2026-03-01 \n 1            NULL      NULL       \n", " n  größe\t  some  day \n──────────────────────\n"},
	} {
		for n, want := range map[int]string{2: c.some, 0: c.none} {
			var b strings.Builder
			if err := (&Conn{db: &written{result: answerOf(n)}}).Format(t.Context(), &b, c.format, "SELECT 1", nil); err != nil {
				t.Errorf("%s: %v", c.format, err)
			}
			if d := cmp.Diff(want, b.String()); d != "" {
				t.Errorf("%s, %d rows (-want +got):\n%s", c.format, n, d)
			}
		}
	}
	var b strings.Builder
	if err := (&Conn{db: &written{result: answerOf(prettyRows + 1)}}).Format(t.Context(), &b, "Pretty", "SELECT 1", nil); err != nil {
		t.Error(err)
	}
	lines := strings.Split(b.String(), "\n")
	if d := cmp.Diff([]string{" n     größe\t    some      day        ", " 10000  weit —", `\  ja, "so"  2026-03-01 `}, []string{lines[0], lines[len(lines)-3], lines[len(lines)-2]}); d != "" || strings.Count(b.String(), "größe") != 2 {
		t.Errorf("many rows (-want +got):\n%s", d)
	}
}

// full is a writer whose disk is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("full")

// TestFailedResults: an error behind the rows, of a row, of the end, and of who takes the rows is that of the statement, in every format; a row
// is not written as the one before it.
func TestFailedResults(t *testing.T) {
	ended := errors.New("ended")
	for format := range rowWriters {
		for name, c := range map[string]struct {
			set  func(*listed)
			want string
		}{
			"behind the rows": {func(l *listed) { l.failed = ended }, "clickhouse: read rows: ended"},
			"of a row":        {func(l *listed) { l.bad = errRow }, "clickhouse: read row: a row that cannot be read"},
			"of the end":      {func(l *listed) { l.closing = ended }, "clickhouse: close rows: ended"},
		} {
			l := answerOf(3)
			c.set(l)
			err := (&Conn{db: &written{result: l}}).Format(t.Context(), new(strings.Builder), format, "SELECT 1", nil)
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: %s: %v", format, name, err)
			}
		}
		if err := (&Conn{db: &written{result: answerOf(5000)}}).Format(t.Context(), full{}, format, "SELECT 1", nil); !errors.Is(err, errFull) {
			t.Errorf("%s: a full disk: %v", format, err)
		}
		r, err := (&Conn{db: &written{result: answerOf(5000)}}).Query(t.Context(), "SELECT 1", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := rowWriters[format](bufio.NewWriter(full{}), r); !errors.Is(err, errFull) || r.rows.(*listed).at == 5000 {
			t.Errorf("%s: a full disk: %v, behind %d rows", format, err, r.rows.(*listed).at)
		}
	}
	r, err := (&Conn{db: &written{result: answerOf(2)}}).Query(t.Context(), "SELECT 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.rows.(*listed).bad = errRow
	if !r.Next() || r.Next() || r.Next() {
		t.Error("there are rows behind one that cannot be read")
	}
	if got := fmt.Sprint(r.Columns[1]); got != "{größe\t String}" {
		t.Errorf("a column: %s", got)
	}
}

// answer is a result that the server has written.
type answer struct {
	io.Reader
	closing error
}

func (a answer) Close() error { return a.closing }

func (w *written) QueryFormat(_ context.Context, format, sql string, _ ...any) (io.ReadCloser, error) {
	if w.answer == nil {
		return nil, errors.New("no answer")
	}
	return answer{io.MultiReader(strings.NewReader(format+" "+sql), w.answer), w.closing}, nil
}

// TestFailedAnswers: an answer of the server that breaks off, or whose end is an error, is one.
func TestFailedAnswers(t *testing.T) {
	broken, ended := errors.New("broken"), errors.New("ended")
	for _, c := range []struct {
		name string
		from *written
		to   io.Writer
		want string
	}{
		{"whole", &written{answer: strings.NewReader("!")}, nil, ""},
		{"none", &written{}, nil, "clickhouse: query: no answer"},
		{"broken", &written{answer: iotest.ErrReader(broken)}, nil, "clickhouse: query: broken"},
		{"broken, and its end", &written{answer: iotest.ErrReader(broken), closing: ended}, nil, "clickhouse: query: broken"},
		{"ended", &written{answer: strings.NewReader("!"), closing: ended}, nil, "clickhouse: query: ended"},
		{"who takes it", &written{answer: strings.NewReader("!")}, full{}, "clickhouse: query: full"},
	} {
		var b strings.Builder
		w := c.to
		if w == nil {
			w = &b
		}
		err := (&Conn{db: c.from, http: true}).Format(t.Context(), w, "CSV", "SELECT 1 FORMAT TSV;", nil)
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if c.want == "" && b.String() != "TSV SELECT 1!" {
			t.Errorf("%s: %s", c.name, &b)
		}
	}
}
