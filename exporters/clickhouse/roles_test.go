package clickhouse

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestRolesAreSQL: the embedded engine has no grants; its parser reads them.
func TestRolesAreSQL(t *testing.T) {
	conn, _ := database(t)
	for _, s := range []Schema{{}, {Database: "o`dd"}, {Cluster: "it's"}, {Tenants: []string{"acme", "it's"}}, {Cluster: "it's", Tenants: []string{"acme"}}} {
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

// TestTenantsSeeTheirOwn: each table and view is one that a tenant's reader may not read, or that shows
// no row of another tenant under the policies. The embedded engine makes no policies, so that their
// conditions are set as filters of the query, which the engine applies to the same tables.
func TestTenantsSeeTheirOwn(t *testing.T) {
	conn, own := database(t)
	s := Schema{Database: own.Database, Tenants: []string{"acme"}}
	if _, err := s.Apply(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	roles := strings.Join(s.Roles(), "\n")
	policy := regexp.MustCompile("ROW POLICY IF NOT EXISTS `earshot_tenant_acme` ON (.*) USING (.*) TO `earshot_reader_acme`").FindStringSubmatch(roles)
	granted := regexp.MustCompile("GRANT (SELECT ON .*) TO `earshot_reader_acme`").FindStringSubmatch(roles)
	if policy == nil || granted == nil {
		t.Fatalf("no policy, or no grant:\n%s", roles)
	}
	var filters []string
	for table := range strings.SplitSeq(policy[1], ", ") {
		filters = append(filters, quoteText(strings.ReplaceAll(table, "`", ""))+": "+quoteText(policy[2]))
	}
	tenants := func(table, settings string) (seen []string) {
		rows, err := conn.Query(t.Context(), "SELECT DISTINCT toString(tenant) AS t FROM "+table+" ORDER BY t"+settings, nil)
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		defer rows.Close()
		for rows.Next() {
			seen = append(seen, fmt.Sprint(rows.Values()[0]))
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		return seen
	}
	rows, err := conn.Query(t.Context(), "SELECT name, has((SELECT groupArray(table) FROM system.columns WHERE database = {db:String} AND name = 'tenant'), name), engine LIKE '%MergeTree' FROM system.tables WHERE database = {db:String}", Params{"db": own.Database})
	if err != nil {
		t.Fatal(err)
	}
	may := make(map[string]bool)
	for g := range strings.SplitSeq(granted[1], ", ") {
		may[strings.TrimPrefix(g, "SELECT ON ")] = true
	}
	has, stored := make(map[string]bool), 0
	for rows.Next() {
		table, tenant := s.name(fmt.Sprint(rows.Values()[0])), fmt.Sprint(rows.Values()[1]) == "1"
		if has[table] = tenant; tenant && fmt.Sprint(rows.Values()[2]) == "1" {
			if stored++; conn.Exec(t.Context(), "INSERT INTO "+table+" (tenant) VALUES ('acme'), ('other')") != nil {
				t.Fatalf("%s takes no rows", table)
			}
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	shown := 0
	for table, tenant := range has {
		if !may[table] {
			if strings.Contains(table, ".`v_") {
				t.Errorf("a tenant may not read %s", table)
			}
			continue
		}
		if !tenant { // it shows no tenant, or rows that all may read
			continue
		}
		for _, other := range tenants(table, " SETTINGS additional_table_filters = {"+strings.Join(filters, ", ")+"}") {
			if other != "acme" {
				t.Errorf("%s shows rows of %s", table, other)
			}
		}
		if len(tenants(table, "")) == 2 {
			shown++
		}
	}
	if shown < stored {
		t.Errorf("%d tables and views have rows of both tenants", shown)
	}
	for table := range may {
		if _, ok := has[table]; !ok && !strings.HasPrefix(table, "system.") {
			t.Errorf("there is no %s", table)
		}
	}
}

// TestPrintedRoles: each statement ends as a client of ClickHouse wants it, and the error of a writer is returned.
func TestPrintedRoles(t *testing.T) {
	s := Schema{Tenants: []string{"acme"}}
	var b bytes.Buffer
	if err := s.PrintRoles(&b); err != nil {
		t.Fatal(err)
	}
	if head, statements, _ := strings.Cut(b.String(), "\n\n"); !strings.HasPrefix(head, "-- ") || statements != strings.Join(s.Roles(), ";\n")+";\n" {
		t.Errorf("%s", &b)
	}
	for cluster, tables := range map[string]int{"": 1, "c": 2} {
		roles := strings.Join((Schema{Cluster: cluster, Tenants: []string{"acme"}}).Roles(), "\n")
		if got := strings.Count(roles, "`earshot`.`messages") - strings.Count(roles, "`earshot`.`messages_rollup") - strings.Count(roles, "`earshot`.`messages_slots"); got != 3*tables {
			t.Errorf("cluster %q: messages are named %d times", cluster, got)
		}
	}
	for n, s := range []Schema{{}, s} {
		if got := strings.Count(strings.Join(s.Roles(), "\n"), "`earshot_every_tenant`"); got != n {
			t.Errorf("%d tenants: %d policies of those who see all", n, got)
		}
	}
	if err := s.PrintRoles(full{}); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	if err := s.Print(full{}); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}
