package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/mcp"
	"github.com/earshot-dev/earshot/docs"
)

// mcpToken is the variable with the token of earshot mcp --listen.
const mcpToken = "EARSHOT_MCP_TOKEN"

func newMCP() *cobra.Command {
	var file configFile
	var listen, pages string
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Answer other agents' questions by the Model Context Protocol",
		Long: `Serve the Model Context Protocol on standard input and output: a coding agent asks what
is stuck (stuck_now), why something was slow (why_slow), what became slower since when
(what_changed), who spent what (who_spent), looks for a text or an id (find), reads a
conversation or a trace (show), compares two (diff), and runs SQL over the views (sql).
Resources are the schema and the questions of docs/questions.md.

No tool writes: sql runs with the rights of a reader, which reaches no file and no
network. An answer has at most 1,500 tokens, or up to 4,000 on request; a cut one says
how to get the rest. Text that agents wrote is marked as untrusted.

With --listen it serves streamable HTTP on loopback, to who has the token: that of
$` + mcpToken + `, else a new one that is printed.`,
		Example: `  claude mcp add earshot -- earshot mcp
  codex mcp add earshot -- earshot mcp
  earshot mcp --listen 127.0.0.1:8091 --pages http://127.0.0.1:8090`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if u, err := url.Parse(pages); pages != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
				return usageError{fmt.Errorf("--pages %q is no address such as http://127.0.0.1:8090", pages)}
			}
			return read(c, &file, func(ctx context.Context, r *reader) (err error) {
				var tables bytes.Buffer
				s, _ := schema(r.cfg, "")
				if err := s.Print(&tables); err != nil {
					return err
				}
				foreign, err := r.foreign(ctx, mcp.SQLTime)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, foreign.Close()) }()
				m := mcp.New(mcp.Settings{
					Store: r, SQL: foreign, Prices: r.prices, Zone: now(c).Location(), Pages: strings.TrimRight(pages, "/"),
					Version: buildVersion(), Schema: tables.String(), Questions: docs.Questions,
				})
				if listen == "" {
					if err := m.Stdio(ctx); err != nil && !errors.Is(err, context.Canceled) {
						return fmt.Errorf("mcp: %w", err)
					}
					return nil
				}
				return serveMCP(c, m, listen)
			})
		},
	}
	file.add(c)
	c.Flags().StringVar(&listen, "listen", "", "serve streamable HTTP on this loopback `ADDRESS`; port 0 takes a free one")
	c.Flags().StringVar(&pages, "pages", "", "the `URL` of earshot ui, for links in answers")
	return c
}

func serveMCP(c *cobra.Command, m *mcp.Server, listen string) error {
	l, err := listenLoopback(c.Context(), listen)
	if err != nil {
		return err
	}
	defer l.Close()
	token := os.Getenv(mcpToken)
	fmt.Fprintf(c.OutOrStdout(), "http://%s\n", l.Addr())
	if token == "" {
		token = rand.Text()
		fmt.Fprintf(c.OutOrStdout(), "Authorization: Bearer %s\n", token)
	}
	return serve(c.Context(), l, m.Handler(l.Addr().String(), token), true) // who has the token
}
