"""`python -m warehouse`."""

from warehouse.cli import main

raise SystemExit(main())
