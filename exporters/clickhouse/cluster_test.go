package clickhouse

import (
	"net/http"
	"net/http/httptest"
	"net/url"
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
		if !x.Gather(&export.Batch{ID: "a", Messages: sampleMessages(10)}) {
			t.Error("nothing is gathered")
		}
		export1(t, x, &export.Batch{})
		export1(t, x, &export.Batch{ID: "b", Messages: sampleMessages(10)})
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
