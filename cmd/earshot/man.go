package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Hidden: true,
		Short:  "Write the man pages of all commands",
		Long: `Write a man page for each command into a directory, which packages have in
/usr/share/man/man1 already. Their date is SOURCE_DATE_EPOCH where that is set.`,
		Example: "  earshot man ~/.local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true // its date would be another one each day
			if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Earshot", Manual: "Earshot"}, args[0]); err != nil {
				return fmt.Errorf("man pages: %w", err)
			}
			return nil
		},
	}
}
