package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestRolesOfTenants: each tenant that is named has a role and a policy, and a tenant is part of the roles.
func TestRolesOfTenants(t *testing.T) {
	t.Chdir(t.TempDir()) // without a configuration
	output := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := newRoot()
		c.SetArgs(append([]string{"schema", "print"}, args...))
		c.SetOut(&out)
		c.SetErr(&out)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := output("--roles"); err != nil || strings.Contains(out, "POLICY") {
		t.Errorf("%v:\n%s", err, out)
	}
	out, err := output("--roles", "--tenant", "acme", "--tenant", "it's")
	if n := strings.Count(out, "CREATE ROW POLICY"); err != nil || n != 3 || !strings.Contains(out, `tenant = 'it\'s' TO `+"`earshot_reader_it's`") {
		t.Errorf("%v, %d policies:\n%s", err, n, out)
	}
	if _, err := output("--tenant", "acme"); !isUsage(err) {
		t.Errorf("without --roles: %v", err)
	}
}
