"""Which distribution provides a Python module, for names that differ and for widely used ones."""

OTHER_NAMES: dict[str, str] = {
    "AppKit": "pyobjc pyobjc-framework-cocoa pyobjc-core",
    "Crypto": "pycryptodome pycrypto",
    "Cryptodome": "pycryptodomex",
    "Foundation": "pyobjc pyobjc-framework-cocoa pyobjc-core",
    "IPython": "ipython ipykernel jupyter notebook ipywidgets",
    "MySQLdb": "mysqlclient mysql-python",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow pillow-simd",
    "PyQt5": "pyqt5",
    "PyQt6": "pyqt6",
    "Xlib": "python-xlib",
    "_pytest": "pytest",
    "_typeshed": "mypy pyright ty",
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4 bs4",
    "consul": "python-consul",
    "cv2": "opencv-python opencv-python-headless opencv-contrib-python opencv-contrib-python-headless",
    "dateutil": "python-dateutil",
    "discord": "discord.py discord py-cord",
    "dns": "dnspython",
    "docx": "python-docx docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "flask_cors": "flask-cors",
    "flask_login": "flask-login",
    "flask_sqlalchemy": "flask-sqlalchemy",
    "git": "gitpython",
    "github": "pygithub",
    "gi": "pygobject",
    "grpc": "grpcio",
    "gitlab": "python-gitlab",
    "haystack": "haystack-ai farm-haystack",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kafka": "kafka-python kafka-python-ng",
    "ldap": "python-ldap",
    "lxml": "lxml",
    "magic": "python-magic",
    "markdown_it": "markdown-it-py",
    "memcache": "python-memcached",
    "multipart": "python-multipart multipart",
    "nacl": "pynacl",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2 psycopg2-binary",
    "pymongo": "pymongo motor",
    "bson": "pymongo bson motor",
    "pyximport": "cython",
    "Cython": "cython",
    "pylab": "matplotlib",
    "mpl_toolkits": "matplotlib",
    "pythoncom": "pywin32",
    "pywintypes": "pywin32",
    "win32api": "pywin32",
    "win32con": "pywin32",
    "ruamel": "ruamel.yaml",
    "serial": "pyserial",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "slugify": "python-slugify unicode-slugify",
    "snappy": "python-snappy",
    "socketio": "python-socketio",
    "socks": "pysocks",
    "speech_recognition": "speechrecognition",
    "telegram": "python-telegram-bot",
    "tlz": "toolz cytoolz",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "whois": "python-whois",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
    "zoneinfo_data": "tzdata",
}
"""Module: distributions that provide it, as PyPI normalises their names."""
SAME = """
aiofiles aiohttp alembic altair anthropic anyio apscheduler argcomplete arrow asgiref asyncpg attrs babel
bcrypt black blinker bokeh boto3 botocore cachetools cattrs celery certifi cffi chardet charset_normalizer
click cloudpickle colorama colorlog coverage cryptography cython dacite dask datasets deepdiff dill django
docutils duckdb elasticsearch email_validator factory faker fastapi filelock flake8 flask fsspec gensim
gevent greenlet gunicorn h11 h2 hatchling httpcore httptools httpx hypothesis idna invoke ipykernel
ipywidgets isort itsdangerous jinja2 joblib jsonschema keras kombu langchain lightgbm litellm llvmlite
loguru lxml mako markdown markupsafe marshmallow matplotlib mock more_itertools mpmath msgpack msgspec
multidict mypy nbformat networkx nltk nox numba numpy oauthlib openai openpyxl orjson packaging pandas
paramiko passlib pathspec peewee pendulum pexpect pip platformdirs playwright plotly pluggy polars
prettytable prometheus_client prompt_toolkit psutil psycopg ptyprocess pyarrow pyasn1 pycparser pydantic
pydantic_core pydantic_settings pygments pylint pymysql pyparsing pypdf pyright pytest pytest_asyncio
pytest_mock pytz redis regex requests responses rich ruff scipy scrapy seaborn selenium sentry_sdk
setuptools shapely simplejson six sniffio sortedcontainers spacy sphinx sqlalchemy sqlmodel sqlparse
starlette statsmodels streamlit structlog sympy tabulate tenacity tensorflow termcolor tiktoken tokenizers
toml tomli tomlkit toolz torch torchvision tornado tox tqdm traitlets transformers trio twisted typer
typing_extensions tzdata ujson urllib3 uvicorn uvloop virtualenv watchdog watchfiles websockets werkzeug
wheel wrapt xgboost xmltodict yarl zstandard
"""
SAME_NAMES = frozenset(SAME.split())
"""Modules whose distribution has the same name."""
STANDARD = """
_typeshed annotationlib asynchat asyncore audioop binhex cgi cgitb chunk compression concurrent crypt
distutils formatter imghdr imp lib2to3 macpath macurl2path msilib msvcrt nis nntplib nt ossaudiodev parser
pipes smtpd sndhdr spwd sre_compile sre_constants sre_parse sunau symbol telnetlib tomllib uu winreg
winsound xdrlib _winapi _overlapped __future__ __main__ typing string ConfigParser Queue StringIO Tkinter
urllib2 urlparse __builtin__ cPickle cStringIO commands httplib java js pyodide micropython machine ulab org
com
"""
OTHER_STDLIB = frozenset(STANDARD.split())
"""Standard modules of other versions and implementations of Python."""
