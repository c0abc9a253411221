package clickhouse

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
)

// TestAnAnswerOfAClusterMeansStored: on a cluster every insert has the settings with which the
// answer is that of the shards and of most of their replicas, also one of gathered rows; on one
// server none has.
func TestAnAnswerOfAClusterMeansStored(t *testing.T) {
	for _, cluster := range []string{"", "c"} {
		var mu sync.Mutex
		var inserts []url.Values
		fake := &fakeServer{t: t, far: &exporttest.Destination{}, tokens: make(map[string][]string)}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("query") == "" {
				fake.hello(w, r)
				return
			}
			if _, err := fake.read("messages", r); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			inserts = append(inserts, r.URL.Query())
		}))
		x, err := New(t.Context(), Settings{Conn: ConnSettings{DSN: server.URL}, Cluster: cluster, Quorum: "auto", TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		x.ready = true
		if !x.Gather(&export.Batch{ID: "a", Messages: exporttest.Records(sampleMessages(10)...)}) {
			t.Error("nothing is gathered")
		}
		part1(t, x)
		export1(t, x, &export.Batch{ID: "b", Messages: exporttest.Records(sampleMessages(10)...)})
		if len(inserts) != 2 {
			t.Errorf("%d inserts", len(inserts))
		}
		for _, q := range inserts {
			want := map[string]string{"distributed_foreground_insert": "", "insert_quorum": ""}
			if cluster != "" {
				want = map[string]string{"distributed_foreground_insert": "1", "insert_quorum": "auto"}
			}
			for name, v := range want {
				if got := q.Get(name); got != v {
					t.Errorf("cluster %q: %s is %q", cluster, name, got)
				}
			}
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}

// TestVersionsAreOnOneShard: the sharding key of a table is made of columns of its sort key, so that
// all versions of a row are on one shard, where FINAL finds them.
func TestVersionsAreOnOneShard(t *testing.T) {
	schema := Schema{Database: "d", Cluster: "c"}
	migrations, err := schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	keys, shards := make(map[string]string), make(map[string]string)
	for _, m := range migrations {
		for _, sql := range m.Statements {
			if m := regexp.MustCompile("(?s)CREATE TABLE IF NOT EXISTS `d`.`(\\w+)_local`.*MergeTree.*ORDER BY (\\(.*?\\)|\\w+)(?:\n|$)").FindStringSubmatch(sql); m != nil {
				keys[m[1]] = m[2]
			}
			if m := regexp.MustCompile("(?s)`d`.`(\\w+)` ON CLUSTER.*ENGINE = Distributed\\('c', 'd', '\\w+', cityHash64\\((.*?)\\)\\)").FindStringSubmatch(sql); m != nil {
				shards[m[1]] = m[2]
			}
		}
	}
	for _, table := range []string{"messages", "spans", "streams", "findings", "dead_letters", "source_ledger", "sessions"} {
		if keys[table] == "" || shards[table] == "" {
			t.Errorf("%s: sort key %q, sharding key %q", table, keys[table], shards[table])
		}
		for column := range strings.SplitSeq(shards[table], ", ") {
			if !regexp.MustCompile(`\b` + column + `\b`).MatchString(keys[table]) {
				t.Errorf("%s is sharded by %s, and sorted by %s", table, column, keys[table])
			}
		}
	}
}
