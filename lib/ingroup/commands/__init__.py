"""The programs behind the targets of make."""
