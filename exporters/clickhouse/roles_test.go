package clickhouse

import (
	"bytes"
	"strings"
	"testing"
)

// TestRolesAreSQL: the embedded engine has no grants; its parser reads them.
func TestRolesAreSQL(t *testing.T) {
	conn, _ := database(t)
	for _, s := range []Schema{{}, {Database: "o`dd"}, {Cluster: "it's"}} {
		roles := s.Roles()
		for _, sql := range roles {
			if err := conn.Exec(t.Context(), "EXPLAIN AST "+sql); err != nil {
				t.Errorf("%v in:\n%s", err, sql)
			}
			if on := strings.Contains(sql, "ON CLUSTER 'it\\'s'"); on != (s.Cluster != "") {
				t.Errorf("cluster %q: %s", s.Cluster, sql)
			}
			if strings.HasSuffix(sql, "TO earshot_reader") && (strings.Contains(sql, "INSERT") || strings.Contains(sql, "ALTER")) {
				t.Errorf("a reader may write: %s", sql)
			}
		}
		var b bytes.Buffer
		if err := s.PrintRoles(&b); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), ";\n"); n != len(roles) {
			t.Errorf("%d statements of %d:\n%s", n, len(roles), &b)
		}
	}
}
