"""`python -m aerie_draft.conformance` is `aerie-conformance`."""

import sys

from aerie_draft.conformance.cli import main

sys.exit(main())
