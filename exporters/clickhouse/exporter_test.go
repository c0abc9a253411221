package clickhouse

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
)

// preparing answers as a database at a migration does, also the queries of the work behind an exporter.
func preparing(version int) (*Conn, *scripted, map[string]int) {
	conn, server := databaseAt(version, nil)
	answers, asked := server.answers, make(map[string]int)
	server.answers = func(sql string) ([][]any, error) {
		now := time.Now()
		server.mu.Lock()
		defer server.mu.Unlock()
		for prefix, row := range map[string][]any{
			"SELECT argMax(after_ms": {1}, "SELECT max(generation)": {1, "[]", now}, "SELECT toUnixTimestamp64Milli(now64(3)), ": {now.UnixMilli(), now.UnixMilli()},
			"SELECT (SELECT count()": {0, 0}, "SELECT toUnixTimestamp64Micro": {now.UnixMicro()}, "SELECT toUnixTimestamp64Nano": {77},
		} {
			if strings.HasPrefix(sql, prefix) {
				asked[prefix]++
				return [][]any{row}, nil
			}
		}
		return answers(sql)
	}
	return conn, server, asked
}

// TestPrepare: a database is made or brought up to date, once, and its tables of settings are written; the rows of another process are attributed, and the work
// behind inserts begins. Without the right to change it, it must fit.
func TestPrepare(t *testing.T) {
	migrations, err := (Schema{}).Migrations()
	if err != nil {
		t.Fatal(err)
	}
	last := migrations[len(migrations)-1].Version
	for _, c := range []struct {
		name     string
		version  int
		create   bool
		fails    bool
		makes    bool
		attribut int // passes
		said     string
	}{
		{"a new database", 0, true, false, true, 0, "tables are up to date"},
		{"one that is up to date", last, true, false, false, 1, ""},
		{"one that is behind", last - 1, true, false, true, 1, "tables are up to date"},
		{"one of others", last, false, false, false, 1, ""},
		{"one of others that is behind", last - 1, false, true, false, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, server, asked := preparing(c.version)
			x := doubleOf(conn)
			var log bytes.Buffer
			x.settings.CreateSchema, x.settings.Logger = c.create, slog.New(slog.NewTextHandler(&log, nil))
			for n := range 2 {
				err := x.Prepare(t.Context())
				if errors.Is(err, ErrSchema) != c.fails || x.isReady() == c.fails {
					t.Errorf("%s: %v, ready %t", c.name, err, x.isReady())
				}
				time.Sleep(time.Second)
				synctest.Wait()
				sent := server.statements()
				writes := func(table string) bool {
					return slices.ContainsFunc(sent, func(sql string) bool { return strings.HasPrefix(sql, "INSERT INTO `earshot`."+quoteName(table)+" ") })
				}
				first := n == 0
				if writes("schema_migrations") != (c.makes && first) || writes("model_prices") != (!c.fails && first) || writes("thresholds") != (!c.fails && first) {
					t.Errorf("%s, %d: %.300q", c.name, n, sent)
				}
			}
			if got := asked["SELECT toUnixTimestamp64Milli(now64(3)), "]; got != c.attribut || !c.fails && !x.keeper.stored.known {
				t.Errorf("%s: %d passes of the attribution", c.name, got)
			}
			if lines := log.String(); strings.Contains(lines, "WARN") || c.said == "" && lines != "" || strings.Count(lines, c.said) > 1 && c.said != "" || !strings.Contains(lines, c.said) {
				t.Errorf("%s: said %s", c.name, lines)
			}
			x.keeper.stop()
		})
	}
}

// TestIdentityOfAStore: it is that of the tables, which are made again where they are gone, once; and a table that is gone is known to be behind any question.
func TestIdentityOfAStore(t *testing.T) {
	migrations, err := (Schema{}).Migrations()
	if err != nil {
		t.Fatal(err)
	}
	last := migrations[len(migrations)-1].Version
	gone := errors.New("it fails")
	for _, c := range []struct {
		name   string
		ids    []string // that the store answers, one after the other
		fails  string   // the question that does
		id     string
		asked  int
		newest int64
	}{
		{"there", []string{"a"}, "", "a", 1, 77}, {"gone", []string{"", "b"}, "", "b", 2, 77}, {"gone again", []string{"", ""}, "", "", 2, 77},
		{"no answer", nil, "SELECT toString(uuid)", "", 2, 0}, {"no ledger", []string{"a"}, "SELECT toUnixTimestamp64Nano", "", 1, 0}, {"no database", nil, "SELECT version()", "", 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, server, _ := preparing(last)
			answers, asked := server.answers, 0
			server.answers = func(sql string) ([][]any, error) {
				uuid := strings.HasPrefix(sql, "SELECT toString(uuid)")
				if uuid {
					asked++
				}
				switch {
				case c.fails != "" && strings.HasPrefix(sql, c.fails):
					return nil, gone
				case uuid && c.ids[asked-1] == "":
					return nil, nil
				case uuid:
					return [][]any{{c.ids[asked-1]}}, nil
				}
				return answers(sql)
			}
			x := doubleOf(conn)
			x.settings.CreateSchema = true
			id, newest, err := x.Identity(t.Context())
			if id != c.id || newest != c.newest || asked != c.asked || errors.Is(err, gone) != (c.fails != "") {
				t.Errorf("%s: %q, %d, %v, asked %d times", c.name, id, newest, err, asked)
			}
			x.keeper.stop()
		})
	}
}

// TestReached: up to where the streams of a store are read.
func TestReached(t *testing.T) {
	failed := errors.New("it fails")
	for _, fails := range []bool{false, true} {
		conn, _ := scriptedConn(func(string) ([][]any, error) {
			if fails {
				return nil, failed
			}
			return [][]any{{"tap", "a", 5}, {"file", "a", 7}}, nil
		})
		x := doubleOf(conn)
		x.ready = true
		got, err := x.Reached(t.Context())
		if fails && !errors.Is(err, failed) || !fails && (err != nil || !maps.Equal(got, map[export.Stream]int64{{Source: "tap", Key: "a"}: 5, {Source: "file", Key: "a"}: 7})) {
			t.Errorf("%v, %v", got, err)
		}
		if x.ready = false; fails { // nor are the tables known
			if _, err := x.Reached(t.Context()); !errors.Is(err, failed) {
				t.Error(err)
			}
			if err := x.Export(t.Context(), &export.Batch{ID: fmt.Sprint(1), Messages: exporttest.Records(sampleMessages(1)...)}); !errors.Is(err, failed) || export.IsPermanent(err) {
				t.Error(err)
			}
		}
	}
}
