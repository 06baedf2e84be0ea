"""Rules for Python and its tools."""

from functools import partial

from handrail.policy.commands.command_rule import Rule

runs_code = partial(Rule, runs_code=True)

RULES = (
    runs_code(
        "python, python3",
        options="-u -B -E -s -S -I -O -P -b -q -W=WARNING -X=INTERPRETER",
        arguments="FILE REST...",
        auto="python a.py, python3 tools/gen.py --out build/x.json, python -u -W error a.py -c x",
        ask="""
            python, python -, python -c x, python -cx, python -Ic x, python -i a.py, python -m,
            python -m http.server, python -X importtime -c x, python -m pip uninstall x
        """,
    ),
    Rule(
        "python --version, python -V, python3 --version, python3 -V",
        reads_only=True,
        auto="python --version",
        ask="python --version x, python3 -V -c x",
    ),
    runs_code(
        "pip install, python -m pip install, python3 -m pip install",
        options="""
            -r|--requirement=FILE -c|--constraint=FILE -e|--editable=REQUIREMENT -U|--upgrade -q|--quiet
            -v|--verbose --no-deps --no-cache-dir --pre --dry-run --disable-pip-version-check --no-input
            --upgrade-strategy=WORD --no-build-isolation --require-virtualenv --require-hashes
            --only-binary=BINARIES --no-binary=BINARIES --prefer-binary --progress-bar=WORD --force-reinstall
            --root-user-action=WORD --timeout=NUMBER --retries=NUMBER --no-compile --no-warn-script-location
            --no-color -h|--help
        """,
        arguments="REQUIREMENT...",
        auto="pip install requests, pip install -r a.txt, pip install -e .[dev], pip install -U a==1",
        ask="""
            pip install -c http://x.invalid/c.txt y, pip install -r http://x.invalid/r.txt,
            pip install -i http://x.invalid y, pip install -ihttp://x.invalid y,
            pip install --extra-index-url=http://x.invalid y, pip install --trusted-host x y,
            pip install git+https://x.invalid/y, pip install http://x.invalid/y.whl,
            pip install --target=/x y, pip install --user y, pip install -f x y, pip install --prefix x y,
            pip install -t x y, pip install --config-settings=a=b y, pip install --global-option=x y,
            pip install y@http://x.invalid
        """,
    ),
    runs_code(
        """
            pytest, python -m pytest, python3 -m pytest, python -B -m pytest, python3 -B -m pytest,
            python -u -m pytest, python3 -u -m pytest
        """,
        options="""
            -q|--quiet -v|--verbose -x|--exitfirst -s -l|--showlocals -k=TEXT -m=TEXT -r=TEXT -n=WORD
            --tb=WORD --lf|--last-failed --ff|--failed-first --nf|--new-first --sw|--stepwise --maxfail=NUMBER
            --durations=NUMBER --durations-min=NUMBER --co|--collect-only -p=PLUGIN_OFF --no-header
            --no-summary --color=WORD --capture=WORD --strict-markers --strict-config --strict --markers
            --fixtures --setup-show --cache-clear --deselect=TEST --ignore=PATH --ignore-glob=TEXT
            --import-mode=WORD --timeout=NUMBER --cov[=PATH] --cov-report=REPORT --no-cov --cov-branch
            --cov-fail-under=NUMBER --doctest-modules -W=WARNING --version --disable-warnings --full-trace
            --show-capture=WORD --randomly-seed=NUMBER --log-level=WORD --log-cli-level=WORD --setup-plan
            --setup-only --runxfail --asyncio-mode=WORD --verbosity=NUMBER --sw-skip|--stepwise-skip
            --reruns=NUMBER --reruns-delay=NUMBER --dist=WORD --numprocesses=WORD --fixtures-per-test
            --cov-append --no-cov-on-fail --noconftest --doctest-glob=TEXT --doctest-continue-on-failure
            --timeout-method=WORD --lfnf|--last-failed-no-failures=WORD --keep-duplicates -h|--help
        """,
        arguments="TEST...",
        auto="""
            pytest, pytest -q tests/test_a.py::test_b, pytest -xvs -k a, pytest -p no:cacheprovider,
            python -m pytest -q tests/, pytest --cov=src --cov-report=term-missing
        """,
        ask="""
            pytest -c x.ini, pytest -p plugin, pytest -pplugin, pytest --rootdir=/x, pytest --basetemp=src,
            pytest --junitxml=x.xml, pytest -o addopts=x, pytest --override-ini=a=b, pytest --confcutdir=x,
            pytest --pdb, pytest --pyargs os, pytest --debug=x, pytest --cov-report=html:src, pytest @x,
            pytest --log-file=x, pytest --cov-config=x
        """,
    ),
    runs_code(
        "python -m unittest, python3 -m unittest",
        options="-v|--verbose -q|--quiet -f|--failfast -b|--buffer -c|--catch -k=TEXT --locals",
        arguments="FILE...",
        auto="python -m unittest, python -m unittest -v tests.test_a, python -m unittest tests/a.py",
        ask="python -m unittest discover -s /x, python -m unittest ../x",
    ),
    runs_code(
        "python -m py_compile, python3 -m py_compile, python -m compileall, python3 -m compileall",
        options="-q|--quiet",
        arguments="FILE FILE...",
        auto="python -m py_compile a.py b.py, python3 -m compileall -q src",
        ask="python -m py_compile, python -m py_compile ../a.py, python -m compileall -d /x src",
    ),
    runs_code(
        "python -m json.tool, python3 -m json.tool",
        options="--indent=NUMBER --sort-keys --compact --json-lines --no-ensure-ascii --tab --no-indent",
        arguments="PATH?",
        auto="python -m json.tool a.json, python -m json.tool --indent 2",
        ask="python -m json.tool a.json b.json, python -m json.tool ../a.json",
    ),
    runs_code(
        "python -m unittest discover, python3 -m unittest discover",
        options="-v|--verbose -q|--quiet -f|--failfast -s|--start-directory=FILE -p|--pattern=TEXT",
        arguments="FILE?",
        auto="python -m unittest discover, python -m unittest discover -s tests",
        ask="python -m unittest discover -t x",
    ),
    runs_code(
        "ruff check, python -m ruff check, python3 -m ruff check",
        options="""
            --select=TEXT --ignore=TEXT --extend-select=TEXT --extend-ignore=TEXT --output-format=WORD
            --statistics --diff --no-cache -n -q|--quiet -v|--verbose -s|--silent -e|--exit-zero --show-files
            --target-version=WORD --preview --no-preview --exclude=TEXT --extend-exclude=TEXT --no-fix
            --isolated --force-exclude --respect-gitignore --per-file-ignores=TEXT --show-fixes
            --line-length=NUMBER --exit-non-zero-on-fix --show-settings -h|--help
        """,
        arguments="PATH...",
        auto="ruff check ., ruff check --select E,F src, ruff check --output-format=concise",
        ask="""
            ruff check --fix, ruff check --fix-only, ruff check --unsafe-fixes --fix, ruff check --add-noqa,
            ruff check --config x, ruff check --output-file=a.py, ruff check -o a.py, ruff check --watch,
            ruff check --cache-dir=/x, ruff check @x
        """,
    ),
    runs_code(
        "ruff format, python -m ruff format, python3 -m ruff format",
        options="--check --diff -q|--quiet -v|--verbose -n --no-cache --preview --line-length=NUMBER",
        arguments="PATH...",
        needs="--check --diff",
        auto="ruff format --check ., ruff format src --diff, ruff format --check --diff",
        ask="ruff format ., ruff format --check --config x, ruff format --check --cache-dir=x",
    ),
    runs_code(
        "ruff",
        options="--version -V -h|--help",
        auto="ruff --version, ruff --help",
        ask="ruff format ., ruff clean, ruff x",
    ),
    Rule(
        "ruff version, ruff linter, ruff help",
        options="--output-format=WORD",
        reads_only=True,
        auto="ruff version, ruff linter",
        ask="ruff linter x",
    ),
    Rule(
        "ruff rule",
        options="--output-format=WORD",
        arguments="WORD",
        reads_only=True,
        auto="ruff rule E501",
        ask="ruff rule --x",
    ),
    runs_code(
        "mypy, python -m mypy, python3 -m mypy",
        options="""
            --strict --ignore-missing-imports --show-error-codes --hide-error-codes --show-error-context
            --show-column-numbers --show-error-end --pretty --no-pretty --no-error-summary --error-summary
            --no-color-output --no-incremental --check-untyped-defs --disallow-untyped-defs
            --disallow-any-generics --disallow-untyped-calls --disallow-incomplete-defs --no-implicit-optional
            --warn-unused-ignores --warn-return-any --warn-unreachable --warn-redundant-casts
            --warn-unused-configs --no-warn-no-return --explicit-package-bases --namespace-packages
            --follow-imports=WORD --python-version=WORD --platform=WORD --exclude=TEXT
            --disable-error-code=WORD --enable-error-code=WORD --no-site-packages --strict-equality
            --extra-checks --local-partial-types --implicit-reexport --no-implicit-reexport -v|--verbose
            --version|-V -p|--package=WORD -m|--module=WORD -c|--command=ANY --skip-cache-mtime-checks
            --no-strict-optional --output=WORD -O=WORD --cache-fine-grained --no-sqlite-cache --sqlite-cache
            --disallow-untyped-decorators --disallow-subclassing-any --disallow-any-unimported
            --disallow-any-expr --disallow-any-decorated --disallow-any-explicit --allow-untyped-defs
            --allow-untyped-calls --allow-untyped-globals --allow-incomplete-defs --allow-redefinition
            --implicit-optional --no-warn-unused-ignores --strict-optional --strict-bytes
            --follow-untyped-imports --show-absolute-path --show-traceback --tb --scripts-are-modules
            --no-silence-site-packages --always-true=WORD --always-false=WORD --color-output
            --show-error-code-links -h|--help
        """,
        arguments="PATH...",
        auto="mypy src, mypy --strict src tests, mypy -p package, mypy --python-version=3.11 a.py",
        ask="""
            mypy --python-executable ./x src, mypy --config-file x src, mypy --install-types,
            mypy --html-report x src, mypy --cache-dir=/x src, mypy --junit-xml x src,
            mypy --custom-typeshed-dir x src, mypy --shadow-file a b, mypy --pdb src, mypy @x
        """,
    ),
)
