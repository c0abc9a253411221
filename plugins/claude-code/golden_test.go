package claudecode

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the want.jsonl of every case, then fail")

// TestGolden holds what each case folds to against its want.jsonl: one message a
// line, the key first, then its row.
func TestGolden(t *testing.T) {
	for _, s := range streams(t) {
		t.Run(s.name, func(t *testing.T) {
			var got strings.Builder
			for _, m := range play(t, s) {
				head, err := json.Marshal(struct {
					Key    string `json:"key"`
					Parent string `json:"parent_key,omitempty"`
				}{m.Key, m.ParentKey})
				if err != nil {
					t.Fatal(err)
				}
				row, err := m.Row().AppendJSON(nil)
				if err != nil {
					t.Fatal(err)
				}
				got.Write(head[:len(head)-1])
				got.WriteByte(',')
				got.Write(row[1:])
				got.WriteByte('\n')
			}
			path := filepath.Join("testdata", s.name, "want.jsonl")
			if *update {
				if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				t.Fatal("rewritten: read the difference, then run without -update")
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}
